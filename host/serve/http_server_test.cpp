#include "penstock/serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(HttpServer, StartsAndStops) {
  HttpServerConfig config;
  auto server = HttpServer::start(config, {{"GET", "/healthz", [](const HttpRequest&) {
                                              return HttpResponse{200, "text/plain", "ok"};
                                            }}});
  ASSERT_TRUE(server.ok()) << server.status().to_string();
  EXPECT_NE((*server)->port(), 0);
  (*server)->stop();
}

}  // namespace
}  // namespace penstock
