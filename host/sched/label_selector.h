// Label selectors (metav1.LabelSelector), by which pods are chosen.
#ifndef PENSTOCK_SCHED_LABEL_SELECTOR_H_
#define PENSTOCK_SCHED_LABEL_SELECTOR_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sched/kubernetes.h"

namespace penstock {

using Labels = std::map<std::string, std::string>;

bool matches(const LabelSelector& selector, const Labels& labels);
// Whether it is there and has no parts. kube-scheduler counts no pods for such a one in a spread
// constraint, although it matches every pod.
bool matches_everything(const LabelSelector& selector);

// The selector with what matchLabelKeys and mismatchLabelKeys add: for each key that the pod has as
// a label, that other pods have the same value, or another one or none. An absent selector stays
// absent.
LabelSelector with_label_keys(LabelSelector selector, const std::vector<std::string>& match,
                              const std::vector<std::string>& mismatch, const Labels& labels);

// A text that two selectors have in common only if they mean the same. No two texts of parts can
// run into each other: every part has its length before it.
std::string key_of(const LabelSelector& selector);
std::string key_part(std::string_view text);

}  // namespace penstock
#endif
