// SCORE_FGD by tables: what the fragmentation of every possible row comes down to is worked out
// once for a list of typical tasks, so that a row costs a look-up per GPU.
#ifndef PENSTOCK_ENGINE_SIMD_FGD_H_
#define PENSTOCK_ENGINE_SIMD_FGD_H_

#include <cstdint>
#include <vector>

#include "penstock/engine/scalar_fgd.h"

namespace penstock {

// For F = total * free - sum over typical tasks that can run of weight * what is free on GPUs that
// they could share. A typical task of one GPU can run as soon as one GPU fits, so that each GPU
// adds free * (the weights of those with request <= left and gpu_milli <= free), which is a table
// over the different requests and the different gpu_milli. Those of several GPUs are looked at one
// by one. Models make tables of their own, which count where the model's bit is set.
class FgdTables {
 public:
  // The tables of the program's list; the thread keeps those of the list that it asked for last.
  static const FgdTables& of(const penstock_program& program);

  // The same as scalar_fgd_score.
  std::int64_t score(const TableView& table, const penstock_program& program,
                     const penstock_column_op& op, const penstock_task& task, std::uint32_t row,
                     std::uint32_t* gpu_mask) const;

 private:
  struct Group {
    std::uint16_t model = 0;
    std::vector<std::int64_t> requests;     // different ones, ascending
    std::vector<std::uint16_t> milli_rank;  // [free milli]: how many different gpu_milli are <= it
    std::uint32_t milli_ranks = 0;
    // [how many requests are <= left][milli_rank]: the weights' sum
    std::vector<std::int64_t> weight;
  };
  void build(const penstock_program& program);
  void add_group(std::uint16_t model, const std::vector<penstock_typical>& typical);
  std::int64_t fragmentation(const FgdRow& state, const std::uint8_t* model_is_here) const;

  std::vector<penstock_typical> list_;  // that the tables were made for
  std::int64_t total_ = 0;
  std::vector<Group> groups_;
  std::vector<penstock_typical> several_;     // of more than one GPU
  std::vector<std::uint16_t> models_;         // different ones; 0 first
  std::vector<std::uint16_t> several_model_;  // index into models_
};

}  // namespace penstock
#endif
