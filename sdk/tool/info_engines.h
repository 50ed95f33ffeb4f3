// What `penstock info` says of engines.
#ifndef PENSTOCK_SDK_TOOL_INFO_ENGINES_H_
#define PENSTOCK_SDK_TOOL_INFO_ENGINES_H_

#include <nlohmann/json.hpp>
#include <string>

namespace penstock::tool {

// A list: those that are built first, with their variants; the others with the reason.
nlohmann::ordered_json engines_json();
// What "auto" takes, for collectives and for decisions, and why.
nlohmann::ordered_json auto_json();
// The above two of `info`, for people.
void print_engines(const nlohmann::ordered_json& info);

// "a b c" of a list of texts.
std::string words_of(const nlohmann::ordered_json& texts);

}  // namespace penstock::tool
#endif
