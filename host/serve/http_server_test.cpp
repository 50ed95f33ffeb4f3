#include "penstock/serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(HttpServer, StopsWithoutARequest) {
  auto server = HttpServer::start({}, {{"GET", "/healthz", [](const HttpRequest&) {
                                          return HttpResponse{200, "text/plain", "ok"};
                                        }}});
  ASSERT_TRUE(server.ok()) << server.status().to_string();
  EXPECT_NE((*server)->port(), 0);
  (*server)->stop();
  (*server)->stop();
}

TEST(HttpServer, AnAddressIsServedByOne) {
  auto first = HttpServer::start({}, {});
  ASSERT_TRUE(first.ok());
  HttpServerConfig config;
  config.port = (*first)->port();
  const auto second = HttpServer::start(config, {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::io_error);
  EXPECT_THAT(second.status().message(), HasSubstr("in use"));
}

TEST(HttpServer, TlsFilesThatAreNoneAreRefused) {
  for (const TlsFiles& files :
       {TlsFiles{"/nowhere.crt", "", ""}, TlsFiles{"", "/nowhere.key", ""},
        TlsFiles{"", "", "/nowhere.crt"}, TlsFiles{"/nowhere.crt", "/nowhere.key", ""}}) {
    HttpServerConfig config;
    config.tls = files;
    const auto server = HttpServer::start(config, {});
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.status().code(), Code::invalid_argument);
  }
}

TEST(HttpServer, AddressesToListenAt) {
  struct Case {
    std::string text, host;
    int port;
  };
  for (const Case& one : std::vector<Case>{{"127.0.0.1:8888", "127.0.0.1", 8888},
                                           {"localhost:0", "localhost", 0},
                                           {"[::1]:65535", "::1", 65535},
                                           {":80", "0.0.0.0", 80}}) {
    const auto config = parse_listen(one.text);
    ASSERT_TRUE(config.ok()) << one.text;
    EXPECT_EQ(config.value().host, one.host);
    EXPECT_EQ(config.value().port, one.port);
  }
  for (const char* text : {"", "8888", "host", "host:", "host:-1", "host:65536", "host:8x",
                           "::1:80", "a b:80", "http://x:80"}) {
    const auto config = parse_listen(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.status().message(), HasSubstr("HOST:PORT"));
  }
}

TEST(HttpServer, Loopback) {
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("localhost"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
}

TEST(HttpServer, AnErrorIsJsonWhateverIsInIt) {
  EXPECT_EQ(http_error(400, "a \"b\"").body, R"({"error":"a \"b\""})");
  EXPECT_THAT(http_error(400, "\xff").body, HasSubstr("error"));
}

}  // namespace
}  // namespace penstock
