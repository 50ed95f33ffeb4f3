#include "penstock/serve/leader.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "penstock/base/forwarding_platform_test.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMs = 1000000;

class Clock final : public ForwardingPlatform {
 public:
  std::uint64_t now_ns() override { return now; }
  std::uint64_t now = std::uint64_t{500} * 1000 * kMs;
};

// One lease with the API server's rule about resourceVersion.
class LeaseApi final : public Api {
 public:
  explicit LeaseApi(Clock& clock) : clock_(clock) {}
  json lease;  // null: none
  int version = 7;
  bool down = false;
  std::uint64_t answer_after_ms = 0;  // the clock moves while a request is under way
  int writes = 0;

  Result<ApiReply> call(const std::string& method, const std::string& path, const std::string& body,
                        const std::string&) override {
    EXPECT_EQ(path.rfind("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", 0), 0U);
    clock_.now += answer_after_ms * kMs;
    if (down) return error(Code::io_error, "down");
    if (method == "GET") return lease.is_null() ? ApiReply{404, "{}"} : ApiReply{200, lease.dump()};
    json sent = json::parse(body);
    if (method == "POST" && !lease.is_null()) return ApiReply{409, "{}"};
    if (method == "PUT" && (lease.is_null() || sent["metadata"]["resourceVersion"] !=
                                                   lease["metadata"]["resourceVersion"])) {
      return ApiReply{409, "{}"};
    }
    ++writes;
    sent["metadata"]["resourceVersion"] = std::to_string(++version);
    lease = sent;
    return ApiReply{method == "POST" ? 201 : 200, sent.dump()};
  }
  Result<ApiReply> stream(const std::string&, std::uint64_t, const StopFlag&,
                          const std::function<bool(std::string_view)>&) override {
    return error(Code::unsupported, "no streams");
  }

 private:
  Clock& clock_;
};

LeaderConfig config_of(const std::string& identity) {
  LeaderConfig config;
  config.identity = identity;
  return config;
}

struct Rig {
  Clock clock;
  LeaseApi api{clock};
  Leader one{api, clock, config_of("one")}, two{api, clock, config_of("two")};
  void pass(std::uint64_t ms) { clock.now += ms * kMs; }
};

TEST(Leader, TheFirstMakesTheLeaseAndRenewsIt) {
  Rig rig;
  EXPECT_FALSE(rig.one.leads());
  EXPECT_TRUE(rig.one.try_acquire_or_renew());
  EXPECT_TRUE(rig.one.leads());
  EXPECT_EQ(rig.api.lease["spec"]["holderIdentity"], "one");
  EXPECT_EQ(rig.api.lease["spec"]["leaseDurationSeconds"], 15);
  EXPECT_EQ(rig.api.lease["spec"]["leaseTransitions"], 0);
  const json acquired = rig.api.lease["spec"]["acquireTime"];
  for (int i = 0; i < 20; ++i) {
    rig.pass(2000);
    EXPECT_TRUE(rig.one.try_acquire_or_renew());
    EXPECT_FALSE(rig.two.try_acquire_or_renew());
    EXPECT_TRUE(rig.one.leads());
    EXPECT_FALSE(rig.two.leads());
  }
  EXPECT_EQ(rig.api.lease["spec"]["acquireTime"], acquired);
  EXPECT_EQ(rig.two.holder(), "one");
}

TEST(Leader, AnotherTakesOverOnlyWhenTheHolderHasGivenUp) {
  Rig rig;
  ASSERT_TRUE(rig.one.try_acquire_or_renew());
  rig.pass(1000);
  EXPECT_FALSE(rig.two.try_acquire_or_renew());
  // The holder renews no more. It gives up after 10 s; two has seen the lease for 15 s at 16 s.
  bool both = false;
  std::uint64_t taken_ms = 0;
  for (std::uint64_t ms = 1000; ms < 30000 && taken_ms == 0; ms += 100) {
    both = both || (rig.one.leads() && rig.two.leads());
    if (rig.two.try_acquire_or_renew()) taken_ms = ms;
    rig.pass(100);
  }
  EXPECT_FALSE(both);
  EXPECT_EQ(taken_ms, 16000U);
  EXPECT_FALSE(rig.one.leads());
  EXPECT_TRUE(rig.two.leads());
  EXPECT_EQ(rig.api.lease["spec"]["leaseTransitions"], 1);
  EXPECT_FALSE(rig.one.try_acquire_or_renew()) << "it comes back late";
  EXPECT_FALSE(rig.one.leads());
}

TEST(Leader, ASuspendedHolderNoLongerLeads) {
  Rig rig;
  ASSERT_TRUE(rig.one.try_acquire_or_renew());
  rig.pass(9999);
  EXPECT_TRUE(rig.one.leads());
  rig.pass(1);
  EXPECT_FALSE(rig.one.leads());
}

TEST(Leader, LeadershipCountsFromBeforeTheRequest) {
  Rig rig;
  rig.api.answer_after_ms = 3000;  // each of two requests
  ASSERT_TRUE(rig.one.try_acquire_or_renew());
  rig.pass(3999);
  EXPECT_TRUE(rig.one.leads());
  rig.pass(1);
  EXPECT_FALSE(rig.one.leads());
}

TEST(Leader, WithoutAnApiServerItIsLostAfterTheDeadline) {
  Rig rig;
  ASSERT_TRUE(rig.one.try_acquire_or_renew());
  rig.api.down = true;
  for (int i = 0; i < 4; ++i) {
    rig.pass(2000);
    EXPECT_FALSE(rig.one.try_acquire_or_renew());
    EXPECT_TRUE(rig.one.leads());
  }
  rig.pass(2000);
  EXPECT_FALSE(rig.one.leads());
  rig.api.down = false;
  EXPECT_TRUE(rig.one.try_acquire_or_renew()) << "nobody took it";
  EXPECT_EQ(rig.api.lease["spec"]["leaseTransitions"], 0);
}

TEST(Leader, ALeaseThatIsGivenBackIsTakenAtOnce) {
  Rig rig;
  ASSERT_TRUE(rig.one.try_acquire_or_renew());
  EXPECT_FALSE(rig.two.try_acquire_or_renew());
  rig.one.release();
  EXPECT_FALSE(rig.one.leads());
  EXPECT_EQ(rig.api.lease["spec"]["holderIdentity"], "");
  EXPECT_TRUE(rig.two.try_acquire_or_renew());
  rig.one.release();  // not its any more
  EXPECT_EQ(rig.api.lease["spec"]["holderIdentity"], "two");
}

TEST(Leader, WhoeverIsSecondAtTheServerDoesNotLead) {
  Rig rig;
  rig.api.lease = {{"metadata", {{"name", "penstock-scheduler"}, {"resourceVersion", "7"}}},
                   {"spec", {{"holderIdentity", ""}}}};
  // Between the other's GET and its PUT the lease changes.
  class Racing final : public Api {
   public:
    explicit Racing(LeaseApi& api) : api_(api) {}
    Result<ApiReply> call(const std::string& method, const std::string& path,
                          const std::string& body, const std::string& type) override {
      auto reply = api_.call(method, path, body, type);
      if (method == "GET") api_.lease["metadata"]["resourceVersion"] = "8";
      return reply;
    }
    Result<ApiReply> stream(const std::string&, std::uint64_t, const StopFlag&,
                            const std::function<bool(std::string_view)>&) override {
      return error(Code::unsupported, "no streams");
    }

   private:
    LeaseApi& api_;
  };
  Racing racing(rig.api);
  Leader late(racing, rig.clock, config_of("late"));
  EXPECT_FALSE(late.try_acquire_or_renew());
  EXPECT_FALSE(late.leads());
  EXPECT_EQ(rig.api.writes, 0);
}

TEST(Leader, ALeaseOfNonsenseDoesNotCrashIt) {
  for (const char* text :
       {"null", "[]", "7", "{}", "{\"spec\":7}", "{\"spec\":{\"holderIdentity\":7}}",
        "{\"spec\":{\"leaseDurationSeconds\":-5,\"holderIdentity\":\"x\"}}"}) {
    Rig rig;
    rig.api.lease = json::parse(text);
    if (rig.api.lease.is_null()) rig.api.lease = json::array();
    rig.one.try_acquire_or_renew();
  }
}

TEST(Leader, DurationsHaveAnOrder) {
  LeaderConfig config = config_of("one");
  EXPECT_TRUE(check_leader_config(config).ok());
  config.renew_ms = 15000;
  EXPECT_EQ(check_leader_config(config).code(), Code::invalid_argument);
  config = config_of("one");
  config.retry_ms = 9000;  // 1.2 times that is beyond the deadline
  EXPECT_EQ(check_leader_config(config).code(), Code::invalid_argument);
  config = config_of("");
  EXPECT_EQ(check_leader_config(config).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace penstock
