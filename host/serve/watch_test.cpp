#include "penstock/serve/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace penstock {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json object(const std::string& name, const std::string& version) {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}}}};
}

std::string event(const std::string& type, const json& about) {
  return json{{"type", type}, {"object", about}}.dump() + "\n";
}

std::string page(const std::string& version, const std::vector<json>& items,
                 const std::string& next = "") {
  json metadata = {{"resourceVersion", version}};
  if (!next.empty()) metadata["continue"] = next;
  return json{{"metadata", metadata}, {"items", items}}.dump();
}

// Answers from a script, and asks for a stop at its end.
class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(StopFlag& stop) : stop_(stop) {}
  std::deque<ApiReply> lists;
  struct Stream {
    std::vector<std::string> parts;
    int status = 200;
    Status end;
  };
  std::deque<Stream> streams;
  std::vector<std::string> paths;

  Result<ApiReply> call(const std::string&, const std::string& path, const std::string&,
                        const std::string&) override {
    paths.push_back(path);
    if (lists.empty()) {
      stop_.request();
      return error(Code::io_error, "the script is over");
    }
    ApiReply reply = lists.front();
    lists.pop_front();
    return reply;
  }

  Result<ApiReply> stream(const std::string& path, std::uint64_t, const StopFlag&,
                          const std::function<bool(std::string_view)>& on_data) override {
    paths.push_back(path);
    if (streams.empty()) {
      stop_.request();
      return error(Code::cancelled, "the script is over");
    }
    const Stream stream = streams.front();
    streams.pop_front();
    if (stream.status != 200) return ApiReply{stream.status, "{\"message\":\"refused\"}"};
    for (const std::string& part : stream.parts) {
      if (!on_data(part)) return ApiReply{200, ""};
    }
    if (!stream.end.ok()) return stream.end;
    return ApiReply{200, ""};
  }

 private:
  StopFlag& stop_;
};

// "+name@version" for a put, "-name" for a removal, "=" for a list that is complete.
class RecordingSink final : public WatchSink {
 public:
  std::vector<std::string> calls;
  void put(const std::string&, const std::string& key, const json& item) override {
    calls.push_back("+" + key + "@" + object_version(item));
  }
  void remove(const std::string&, const std::string& key) override { calls.push_back("-" + key); }
  void synced(const std::string&) override { calls.emplace_back("="); }
  void heard(const std::string&) override {}
};

struct Rig {
  StopFlag stop;
  ScriptedApi api{stop};
  RecordingSink sink;
  std::vector<std::string> restarts;

  void run() {
    WatchConfig config;
    config.kind = "Node";
    config.path = "/api/v1/nodes";
    config.least_backoff_ms = 1;
    config.most_backoff_ms = 2;
    Watch watch(api, sink, config,
                [this](const std::string&, const std::string& why) { restarts.push_back(why); });
    watch.run(stop);
  }
};

TEST(Watch, ListsInPagesThenFollows) {
  Rig rig;
  rig.api.lists = {{200, page("10", {object("a", "3")}, "more")},
                   {200, page("10", {object("b", "4")})}};
  rig.api.streams = {{{event("ADDED", object("c", "11")), event("MODIFIED", object("a", "12")),
                       event("DELETED", object("b", "13"))},
                      200,
                      {}}};
  rig.run();
  EXPECT_THAT(rig.sink.calls, ElementsAre("+a@3", "+b@4", "=", "+c@11", "+a@12", "-b"));
  ASSERT_GE(rig.api.paths.size(), 4U);
  EXPECT_THAT(rig.api.paths[1], HasSubstr("continue=more"));
  EXPECT_THAT(rig.api.paths[2], HasSubstr("resourceVersion=10&"));
  // Resumed from the last event's version, without a list.
  EXPECT_THAT(rig.api.paths[3], HasSubstr("watch=1"));
  EXPECT_THAT(rig.api.paths[3], HasSubstr("resourceVersion=13&"));
}

TEST(Watch, ABookmarkMovesTheVersionOnly) {
  Rig rig;
  rig.api.lists = {{200, page("10", {})}};
  rig.api.streams = {{{event("BOOKMARK", object("", "50"))}, 200, error(Code::io_error, "broken")}};
  rig.run();
  EXPECT_THAT(rig.sink.calls, ElementsAre("="));
  EXPECT_THAT(rig.api.paths.back(), HasSubstr("resourceVersion=50&"));
  EXPECT_THAT(rig.restarts, ElementsAre("broken"));
}

TEST(Watch, AfterExpiryOnlyTheDifferenceIsTold) {
  for (const bool by_event : {false, true}) {
    Rig rig;
    rig.api.lists = {{200, page("10", {object("a", "3"), object("b", "4"), object("c", "5")})},
                     {200, page("20", {object("a", "3"), object("b", "14"), object("d", "15")})}};
    if (by_event) {
      rig.api.streams = {
          {{event("ERROR", {{"code", 410}, {"message", "too old"}}), "more"}, 200, {}}};
    } else {
      rig.api.streams = {{{}, 410, {}}};
    }
    rig.run();
    EXPECT_THAT(rig.sink.calls,
                ElementsAre("+a@3", "+b@4", "+c@5", "=", "+b@14", "+d@15", "-c", "="));
    EXPECT_THAT(rig.api.paths.back(), HasSubstr("resourceVersion=20&"));
    EXPECT_THAT(rig.restarts, ElementsAre("expired"));
  }
}

TEST(Watch, RepeatedAndLateEventsChangeNothing) {
  Rig rig;
  rig.api.lists = {{200, page("10", {})}};
  rig.api.streams = {{{event("ADDED", object("a", "11")), event("ADDED", object("a", "11")),
                       event("MODIFIED", object("a", "13")), event("MODIFIED", object("a", "12")),
                       event("DELETED", object("a", "15")), event("MODIFIED", object("a", "14")),
                       event("DELETED", object("a", "15")), event("ADDED", object("a", "16"))},
                      200,
                      {}}};
  rig.run();
  EXPECT_THAT(rig.sink.calls, ElementsAre("=", "+a@11", "+a@13", "-a", "+a@16"));
}

TEST(Watch, WhatIsNoEventLeadsToAList) {
  for (const std::string& bad :
       {std::string("{\"type\":\"ADDED\"}\n"), std::string("nonsense\n"), std::string("[1]\n"),
        event("ADDED", {{"metadata", json::object()}}), event("CHANGED", object("a", "1")),
        std::string("{\"type\":3,\"object\":{}}\n")}) {
    Rig rig;
    rig.api.lists = {{200, page("10", {object("a", "3")})}, {200, page("12", {})}};
    rig.api.streams = {{{bad}, 200, {}}};
    rig.run();
    EXPECT_THAT(rig.sink.calls, ElementsAre("+a@3", "=", "-a", "=")) << bad;
  }
}

TEST(Watch, AListThatFailsIsTriedAgain) {
  Rig rig;
  rig.api.lists = {{500, "{\"message\":\"later\"}"},
                   {200, "no json"},
                   {200, "{\"items\":7}"},
                   {410, "{}"},
                   {200, page("10", {object("a", "3")})}};
  rig.run();
  EXPECT_THAT(rig.sink.calls, ElementsAre("+a@3", "="));
}

TEST(WatchParser, LinesArriveInAnyPieces) {
  const std::string text =
      event("ADDED", object("a", "1")) + "\n" + event("DELETED", object("b", "2"));
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    WatchParser parser(1000);
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const Status status =
          parser.feed(text.substr(at, piece), [&seen](const std::string& type, const json& item) {
            seen.push_back(type + " " + object_key(item));
            return Status();
          });
      ASSERT_TRUE(status.ok()) << status.to_string();
    }
    EXPECT_THAT(seen, ElementsAre("ADDED a", "DELETED b"));
  }
}

TEST(WatchParser, ALineHasABound) {
  WatchParser parser(100);
  const auto ignore = [](const std::string&, const json&) { return Status(); };
  EXPECT_TRUE(parser.feed(std::string(100, ' '), ignore).ok());
  EXPECT_EQ(parser.feed(" ", ignore).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace penstock
