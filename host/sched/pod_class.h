// What pods are to each other: classes of pods that no selector and no term tells apart, and the
// terms about other pods that they carry.
#ifndef PENSTOCK_SCHED_POD_CLASS_H_
#define PENSTOCK_SCHED_POD_CLASS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/sched/kubernetes.h"
#include "penstock/sched/label_selector.h"

namespace penstock {

using NamespaceLabels = std::map<std::string, Labels>;

// A term of podAffinity or podAntiAffinity with what the pod that has it adds: its namespace, and
// the values of its labels.
struct PodTerm {
  std::set<std::string> namespaces;
  LabelSelector namespace_selector;
  LabelSelector selector;
  std::string topology_key;
  std::string key;  // the same only for terms that mean the same
};
PodTerm resolve_term(const PodAffinityTerm& term, const KubernetesPod& pod);

// Of whom a term is, which decides what a namespace means that nobody knows: an incoming pod's
// terms are asked of the namespaces that there are, those of pods that are placed of the incoming
// pod's namespace, with no labels when it is not known.
enum class TermOf { incoming, placed };
bool matches(const PodTerm& term, TermOf whose, const std::string& namespace_name,
             const Labels& labels, const NamespaceLabels& namespaces);
bool depends_on_namespaces(const PodTerm& term);

// A term that pods carry, for the pods that come after them.
struct CarriedTerm {
  enum class Kind : std::uint8_t {
    anti_required,
    affinity_required,
    affinity_preferred,
    anti_preferred
  };
  Kind kind;
  // Preferred: the sum of the weights of the pod's terms that mean this; required: their number.
  std::int32_t weight = 1;
  PodTerm term;
  std::string key;
};

struct PodClass {
  std::string key;
  std::string namespace_name;
  Labels labels;
  bool terminating = false;
  std::vector<const CarriedTerm*> carried;  // each once
  std::size_t pods = 0;                     // that are remembered

  bool carries(const CarriedTerm* term) const;

  // What the owner of the classes remembers of one; see PodClasses::met and count_columns.h.
  std::vector<const CarriedTerm*> met;
  std::size_t terms_seen = 0;
  std::vector<std::pair<std::uint16_t, std::uint64_t>> reacts;  // count column, its serial
  std::uint64_t serial_seen = 0, evictions_seen = 0, table_seen = 0;
};

// One thread at a time.
class PodClasses {
 public:
  // The class of the pod, made when there is none. Stays until sweep().
  PodClass* find(const KubernetesPod& pod);
  // The terms that some class carries and that match a pod of this class.
  const std::vector<const CarriedTerm*>& met(PodClass* pods, const NamespaceLabels& namespaces);
  // After namespaces have changed.
  void forget_met();
  // Drops the classes that no pod is of, whenever their number has doubled, with the terms that
  // only they carried. Classes that find() gave are not to be used after it, but those with pods.
  void sweep();
  // Rises with every term that is new, and with sweep() and forget_met().
  std::uint64_t version() const { return version_; }
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [key, pods] : classes_) visit(*pods);
  }

 private:
  const CarriedTerm* carry(CarriedTerm::Kind kind, std::int32_t weight, PodTerm term);

  std::unordered_map<std::string, std::unique_ptr<PodClass>> classes_;
  std::unordered_map<std::string, std::unique_ptr<CarriedTerm>> terms_;
  std::vector<const CarriedTerm*> order_;  // of terms_, as they came
  std::uint64_t version_ = 0;
  static constexpr std::size_t kFewClasses = 1024;
  std::size_t sweep_at_ = kFewClasses;
};

}  // namespace penstock
#endif
