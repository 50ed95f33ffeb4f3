#include "penstock/memory/agreement_members.h"

#include "penstock/base/checksum.h"

namespace penstock {

MembershipView::MembershipView(Pool& pool, Agreement agreement, std::byte* beats)
    : pool_(&pool),
      agreement_(std::move(agreement)),
      beats_(beats),
      memory_(pool.platform(), pool.coherence()) {}

Result<MembershipView> MembershipView::open(Pool& pool) {
  PENSTOCK_ASSIGN(Agreement agreement, Agreement::open(pool, kMembershipAgreement));
  if (agreement.participants() > kMaxHosts) {
    return error(Code::unsupported, "pool {} is for {} hosts; a membership has at most {}",
                 pool.spec(), agreement.participants(), kMaxHosts);
  }
  return MembershipView(pool, std::move(agreement), pool.agreement_space(kPoolAgreements).base);
}

// Edits that change nothing but the epoch leave the state alone, so that two hosts which make the
// same change agree on it.
Result<Members> MembershipView::change(const std::function<void(Members*)>& edit,
                                       std::uint64_t deadline_ns) {
  const auto next = [&](const Decision& newest) -> std::optional<AgreementValue> {
    const auto present = from_agreement_value<Members>(newest.value);
    Members changed = present;
    changed.epoch = present.epoch + 1;
    edit(&changed);
    if (changed.since == present.since) return std::nullopt;
    return to_agreement_value(changed);
  };
  PENSTOCK_ASSIGN(const Decision decision, agreement_.update(next, deadline_ns));
  return from_agreement_value<Members>(decision.value);
}

Result<Members> MembershipView::join(std::uint64_t deadline_ns) {
  const std::uint32_t host = pool_->host_id();
  return change(
      [host](Members* members) {
        if (members->since[host] == 0) {
          members->since[host] = static_cast<std::uint32_t>(members->epoch);
        }
      },
      deadline_ns);
}

Result<Members> MembershipView::remove(std::uint32_t hosts, std::uint64_t deadline_ns) {
  return change(
      [hosts](Members* members) {
        for (std::uint32_t host = 0; host < kMaxHosts; ++host) {
          if ((hosts >> host & 1) != 0) members->since[host] = 0;
        }
      },
      deadline_ns);
}

Result<Members> MembershipView::look(std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const Decision newest, agreement_.latest(deadline_ns));
  return from_agreement_value<Members>(newest.value);
}

// A line that is being written, or was cut off, reads as silence.
BeatRecord MembershipView::load(std::uint32_t host) const {
  BeatRecord record{};
  if (host >= agreement_.participants()) return record;
  memory_.load(&record, beats_ + std::size_t{host} * sizeof record, sizeof record);
  const bool counts = record.magic == kBeatMagic &&
                      record.checksum == crc32c(&record, offsetof(BeatRecord, checksum));
  return counts ? record : BeatRecord{};
}

Status MembershipView::store(const std::function<void(BeatRecord*)>& edit,
                             std::uint64_t deadline_ns) {
  PENSTOCK_ASSIGN(const auto lock, agreement_.exclude(deadline_ns));
  BeatRecord record = load(pool_->host_id());
  record.magic = kBeatMagic;
  edit(&record);
  record.checksum = crc32c(&record, offsetof(BeatRecord, checksum));
  memory_.store(beats_ + std::size_t{pool_->host_id()} * sizeof record, &record, sizeof record);
  return Status();
}

Status MembershipView::beat(std::uint64_t deadline_ns) {
  return store([](BeatRecord* record) { ++record->beats; }, deadline_ns);
}

Status MembershipView::acknowledge(std::uint64_t epoch, std::uint64_t deadline_ns) {
  return store(
      [epoch](BeatRecord* record) {
        record->acknowledged = std::max(record->acknowledged, epoch);
        ++record->beats;
      },
      deadline_ns);
}

std::uint64_t MembershipView::acknowledged(std::uint32_t host) const {
  return load(host).acknowledged;
}

std::uint32_t MembershipView::silent(const Members& members, std::uint64_t timeout_ns) {
  std::uint32_t found = 0;
  for (std::uint32_t host = 0; host < agreement_.participants(); ++host) {
    if (!members.is_member(host) || host == pool_->host_id()) {
      seen_[host] = Seen();
      continue;
    }
    const std::uint64_t beats = load(host).beats;
    const std::uint64_t now_ns = pool_->platform().now_ns();
    Seen& seen = seen_[host];
    if (seen.since_ns == 0 || beats != seen.beats) {
      seen = {beats, now_ns};
    } else if (now_ns - seen.since_ns >= timeout_ns) {
      found |= 1u << host;
    }
  }
  return found;
}

}  // namespace penstock
