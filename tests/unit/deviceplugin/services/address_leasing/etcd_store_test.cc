// etcd's own ways of refusing, failing and coming back.
#include "deviceplugin/services/address_leasing/etcd_store.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "netns/json/record_io.h"
#include "tests/support/cluster_store/certificates.h"
#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/cluster_store/scripted_server.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

constexpr const char* kPool = "10.100.0.0/16";

class EtcdTest : public ::testing::Test {
 protected:
  void SetUp() override { (void)std::signal(SIGPIPE, SIG_IGN); }

  static Certificates& Pems() {
    static Certificates certificates;
    return certificates;
  }
  EtcdOptions Secure() const { return {1, true, true, Pems().directory(), {}, {}}; }
  static Error ErrorOf(const address_leasing::EtcdConfig& config) {
    auto got = MakeEtcdStore(Root(), config)->Get(ipam::LeaseKey::Node("node0"));
    return got ? Error{} : got.error();
  }
  static void ExpectRefusal(const address_leasing::EtcdConfig& config, ErrorCode code,
                            const std::string& word) {
    const Error error = ErrorOf(config);
    EXPECT_EQ(error.code, code) << Describe(error);
    EXPECT_NE(Describe(error).find(word), std::string::npos) << Describe(error);
    EXPECT_FALSE(error.hint.empty()) << Describe(error);
  }

  TempRoot files_;
};

TEST_F(EtcdTest, WhoIsNotWhoItShouldBeIsRefused) {
  EtcdCluster cluster(files_.directory(), Secure());
  const address_leasing::EtcdConfig good = cluster.Config();
  ASSERT_EQ(ErrorOf(good).message, "");

  address_leasing::EtcdConfig config = good;
  config.ca_file = Pems().Path("other-ca.pem");
  ExpectRefusal(config, ErrorCode::kPermission, "certificate is not trusted");
  config = good;
  config.cert_file = Pems().Path("unknown.pem");
  config.key_file = Pems().Path("unknown-key.pem");
  ExpectRefusal(config, ErrorCode::kPermission, "does not accept our certificate");
  config.cert_file = config.key_file = "";
  ExpectRefusal(config, ErrorCode::kPermission, "does not accept our certificate");
  config = good;
  config.cert_file = Pems().Path("admin.pem");
  config.key_file = Pems().Path("admin-key.pem");
  ExpectRefusal(config, ErrorCode::kPermission, "CN");
  config = good;
  config.key_file = Pems().Path("server-key.pem");
  ExpectRefusal(config, ErrorCode::kInvalid, "is not the key of");
  config = good;
  config.ca_file = Pems().Path("nothing.pem");
  ExpectRefusal(config, ErrorCode::kInvalid, "no such file");
  config.ca_file = Pems().Path("ca-key.pem");
  ExpectRefusal(config, ErrorCode::kInvalid, "no certificate in PEM");

  config = good;
  files_.Write("/wrong", "wrong\n");
  config.password_file = files_.directory() + "/wrong";
  ExpectRefusal(config, ErrorCode::kPermission, "passwordFile");
  config.password_file = files_.directory() + "/nothing";
  ExpectRefusal(config, ErrorCode::kInvalid, "is not there");
  config.user_file = config.password_file = "";
  ExpectRefusal(config, ErrorCode::kPermission, "userFile");
  config = good;
  config.prefix = "/elsewhere";
  ExpectRefusal(config, ErrorCode::kPermission, "grant-permission");
}

TEST_F(EtcdTest, ACertificateForAnotherNameIsRefused) {
  // The same server, asked for by a name that its certificate does not have.
  EtcdCluster cluster(files_.directory(), Secure());
  address_leasing::EtcdConfig config = cluster.Config();
  config.endpoints[0].host = "127.0.0.2";
  const Error elsewhere = ErrorOf(config);
  // etcd listens on 127.0.0.1 only, so nothing answers there.
  EXPECT_EQ(elsewhere.code, ErrorCode::kUnavailable) << Describe(elsewhere);
  config.endpoints[0].host = "0.0.0.0";  // which is 127.0.0.1 to connect(2)
  ExpectRefusal(config, ErrorCode::kPermission, "IP address mismatch");
  config.endpoints[0].host = "localhost";
  EXPECT_EQ(ErrorOf(config).message, "");
}

TEST_F(EtcdTest, AnUnknownTokenIsAskedForAnew) {
  EtcdCluster cluster(files_.directory(), Secure());
  auto store = MakeEtcdStore(Root(), cluster.Config());
  auto made = store->Create(ipam::LeaseKey::Block(kPool, 1), "{}");
  ASSERT_TRUE(made) << Describe(made.error());
  // Tokens are older than the latest change of users.
  cluster.Call("/v3/auth/user/add", R"({"name":"somebody","password":"else"})");
  auto changed = store->Update(*made, R"({"a":1})");
  ASSERT_TRUE(changed) << Describe(changed.error());
  // A restarted member has forgotten all tokens.
  cluster.Kill(0);
  cluster.Start(0);
  cluster.AwaitAll();
  auto again = store->Update(*changed, R"({"a":2})");
  if (!again) {  // the connection was found closed after it was sent
    EXPECT_EQ(again.error().code, ErrorCode::kUnavailable) << Describe(again.error());
    again = store->Update(*changed, R"({"a":2})");
  }
  ASSERT_TRUE(again) << Describe(again.error());
}

TEST_F(EtcdTest, UsersThatEtcdDoesNotHave) {
  EtcdCluster cluster(files_.directory(), {});
  address_leasing::EtcdConfig config = cluster.Config();
  config.user_file = files_.directory() + "/user";
  config.password_file = files_.directory() + "/password";
  ExpectRefusal(config, ErrorCode::kInvalid, "authentication is not enabled");
}

TEST_F(EtcdTest, OneOfThreeMayBeAway) {
  EtcdCluster cluster(files_.directory(), {3, false, false, "", {}, {}});
  address_leasing::EtcdConfig config = cluster.Config();
  config.timeout = std::chrono::seconds(2);
  auto store = MakeEtcdStore(Root(), config);
  auto entry = store->Create(ipam::LeaseKey::Node("node0"), R"({"n":0})");
  ASSERT_TRUE(entry) << Describe(entry.error());
  int number = 0;
  // Repeats until one change is certain. If the outcome of an update is unknown, it reads the entry, like
  // leasing.
  const auto change = [&] {
    const std::string value = R"({"n":)" + std::to_string(++number) + "}";
    const bool done = Eventually([&] {
      auto changed = store->Update(*entry, value);
      if (changed) {
        entry = *changed;
        return true;
      }
      auto read = store->Get(entry->key);
      if (!read || !*read) return false;
      entry = **read;
      return entry->value == value;
    });
    EXPECT_TRUE(done) << number;
  };
  for (int member = 0; member < 3; ++member) {
    cluster.Signal(member, SIGSTOP);
    change();
    cluster.Signal(member, SIGCONT);
    change();
    cluster.Kill(member);
    change();
    cluster.Start(member);
    cluster.AwaitAll();
    change();
  }
  EXPECT_EQ((*store->Get(entry->key))->value, R"({"n":12})");
}

TEST_F(EtcdTest, WithoutAMajorityNothingIsAnswered) {
  EtcdCluster cluster(files_.directory(), {3, false, false, "", {}, {}});
  address_leasing::EtcdConfig config = cluster.Config();
  config.timeout = std::chrono::seconds(2);
  auto store = MakeEtcdStore(Root(), config);
  auto made = store->Create(ipam::LeaseKey::Node("node0"), "{}");
  ASSERT_TRUE(made) << Describe(made.error());
  cluster.Kill(0);
  cluster.Kill(1);
  for (const Error& error :
       {store->Get(made->key).error(), store->Update(*made, "{}").error(), store->Nodes("", 1).error()}) {
    EXPECT_TRUE(error.code == ErrorCode::kTimeout || error.code == ErrorCode::kUnavailable)
        << Describe(error);
  }
}

struct EtcdAnswer {
  const char* name;
  int status;
  const char* body;
  ErrorCode code;
};

void PrintTo(const EtcdAnswer& answer, std::ostream* out) {
  *out << answer.name;
}

class EtcdAnswerTest : public ::testing::TestWithParam<EtcdAnswer> {};

TEST_P(EtcdAnswerTest, IsAnErrorOfItsKind) {
  const std::string answer = ScriptedServer::Answer(GetParam().status, GetParam().body);
  ScriptedServer server({{answer}, {answer}, {answer}, {answer}});
  address_leasing::EtcdConfig config;
  config.endpoints = {*http::ParseHttpEndpoint(server.url())};
  auto store = MakeEtcdStore(Root(), config);
  const ipam::LeaseEntry seen{ipam::LeaseKey::Node("node0"), "{}", "5"};
  for (const Error& error : {store->Get(seen.key).error(), store->Update(seen, "{}").error(),
                             store->Remove(seen).error(), store->Blocks(kPool, 0, 1).error()}) {
    EXPECT_EQ(error.code, GetParam().code) << Describe(error);
  }
  EXPECT_EQ(server.requests(), 4);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EtcdAnswerTest,
    ::testing::Values(EtcdAnswer{"NoJson", 200, "<html>", ErrorCode::kMalformed},
                      EtcdAnswer{"Empty", 200, "", ErrorCode::kMalformed},
                      EtcdAnswer{"NoObject", 200, "[]", ErrorCode::kMalformed},
                      EtcdAnswer{"NoHeader", 200, "{}", ErrorCode::kMalformed},
                      EtcdAnswer{"HeaderIsNoObject", 200, R"({"header":1})", ErrorCode::kMalformed},
                      EtcdAnswer{"NoGateway", 404, "404 page not found", ErrorCode::kInvalid},
                      EtcdAnswer{"NoLeader", 503, R"({"error":"etcdserver: no leader","code":14})",
                                 ErrorCode::kUnavailable},
                      EtcdAnswer{"Timeout", 503, R"({"error":"etcdserver: request timed out","code":14})",
                                 ErrorCode::kUnavailable},
                      EtcdAnswer{"Proxy", 502, "<html>", ErrorCode::kUnavailable},
                      EtcdAnswer{"TooMany", 429, R"({"error":"etcdserver: too many requests","code":8})",
                                 ErrorCode::kUnavailable},
                      EtcdAnswer{"Denied", 403, R"({"error":"etcdserver: permission denied","code":7})",
                                 ErrorCode::kPermission},
                      EtcdAnswer{"Wrong", 400, R"({"error":"invalid","code":3})", ErrorCode::kInvalid}),
    [](const auto& named) { return named.param.name; });

TEST(EtcdEntriesTest, ForeignKeysAreNotTakenForOurs) {
  // Each with a key of "/railhead/v1/...": no number, another's node, no base64.
  for (const char* kv :
       {R"({"key":"L3JhaWxoZWFkL3YxL2Jsb2Nrcy8xMC4xMDAuMC4wXzE2L3g=","value":"e30=","mod_revision":"5"})",
        R"({"key":"L290aGVy","value":"e30=","mod_revision":"5"})",
        R"({"key":"!","value":"e30=","mod_revision":"5"})", R"({"key":"L290aGVy","value":"e30="})"}) {
    ScriptedServer server(
        {{ScriptedServer::Answer(200, R"({"header":{"revision":"9"},"kvs":[)" + std::string(kv) + "]}")}});
    address_leasing::EtcdConfig config;
    config.endpoints = {*http::ParseHttpEndpoint(server.url())};
    auto listed = MakeEtcdStore(Root(), config)->Blocks(kPool, 0, 10);
    ASSERT_FALSE(listed) << kv;
    EXPECT_EQ(listed.error().code, ErrorCode::kMalformed) << Describe(listed.error());
  }
}

Result<address_leasing::EtcdConfig> Parse(const std::string& text) {
  return ParseRecord<address_leasing::EtcdConfig>(text, "etcd", UnknownFields::kRefuse);
}

TEST(EtcdConfigTest, Defaults) {
  auto config = Parse(R"({"endpoints":["http://127.0.0.1:2379"]})");
  ASSERT_TRUE(config) << Describe(config.error());
  EXPECT_EQ(config->prefix, "/railhead");
  EXPECT_EQ(config->timeout, std::chrono::seconds(5));
}

TEST(EtcdConfigTest, All) {
  auto config = Parse(
      R"({"endpoints":["https://a:1","https://b:2"],"prefix":"/x/","caFile":"/ca","certFile":"/c","keyFile":"/k",)"
      R"("userFile":"/u","passwordFile":"/p","timeoutSeconds":9})");
  ASSERT_TRUE(config) << Describe(config.error());
  EXPECT_EQ(config->endpoints.size(), 2U);
  EXPECT_EQ(config->prefix, "/x");
  EXPECT_EQ(config->key_file, "/k");
  EXPECT_EQ(config->timeout, std::chrono::seconds(9));
}

TEST(EtcdConfigTest, MistakesAreNamedWithTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({})", "/endpoints"},
      {R"({"endpoints":[]})", "/endpoints"},
      {R"({"endpoints":"http://a"})", "/endpoints"},
      {R"({"endpoints":["a:1"]})", "/endpoints"},
      {R"({"endpoints":["https://a:1"]})", "/caFile"},
      {R"({"endpoints":["http://a:1"],"certFile":"/c"})", "/keyFile"},
      {R"({"endpoints":["http://a:1"],"passwordFile":"/c"})", "/userFile"},
      {R"({"endpoints":["http://a:1"],"caFile":"c"})", "/caFile"},
      {R"({"endpoints":["http://a:1"],"timeoutSeconds":0})", "/timeoutSeconds"},
      {R"({"endpoints":["http://a:1"],"endpoint":1})", "/endpoint: unknown field"}};
  for (const auto& [text, place] : wrong) {
    auto config = Parse(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
    EXPECT_NE(config.error().message.find(place), std::string::npos) << config.error().message;
  }
}

}  // namespace
}  // namespace railhead::testing
