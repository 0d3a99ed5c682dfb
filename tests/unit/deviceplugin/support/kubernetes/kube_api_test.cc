// The address of the Kubernetes API and the credentials for it: kubeconfig files and a pod's environment.
#include <gtest/gtest.h>

#include "deviceplugin/support/http/http_message.h"
#include "deviceplugin/support/kubernetes/kube_access.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

// A file of kubeadm, with all the fields that Railhead does not read.
constexpr const char* kKubeconfig = R"(apiVersion: v1
kind: Config
preferences: {}
clusters:
- cluster:
    certificate-authority-data: Y2E=
    server: https://10.0.0.1:6443
  name: one
- cluster: {certificate-authority: pki/ca.crt, server: "https://[fd00::1]:6443", tls-server-name: kubernetes}
  name: two
contexts:
- context: {cluster: one, user: admin, namespace: kube-system}
  name: admin@one
- context:
    cluster: two
    user: node
  name: node@two
current-context: admin@one
users:
- name: admin
  user:
    client-certificate-data: Y2VydA==
    client-key-data: a2V5
- name: node
  user: {tokenFile: /run/token, token: "true"}
)";

class KubeConfigTest : public ::testing::Test {
 protected:
  Result<KubeAccess> Find(const std::string& text, const std::string& context = "") {
    root_.Write("/etc/kube/config", text);
    KubeConfig config;
    config.kubeconfig = "/etc/kube/config";
    config.context = context;
    return FindKubeAccess(root_.root(), config, {});
  }
  void ExpectRefusal(const std::string& text, const std::string& word) {
    auto access = Find(text);
    ASSERT_FALSE(access) << text;
    EXPECT_NE(Describe(access.error()).find(word), std::string::npos) << Describe(access.error());
  }
  // A file of one context whose cluster and user have these further lines.
  static std::string With(const std::string& cluster, const std::string& user) {
    return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
           "clusters:\n- name: k\n  cluster:\n    server: https://a:1\n    " +
           cluster + "\nusers:\n- name: u\n  user:\n    token: t\n    " + user + "\n";
  }

  TempRoot root_;
};

TEST_F(KubeConfigTest, TheCurrentContext) {
  auto access = Find(kKubeconfig);
  ASSERT_TRUE(access) << Describe(access.error());
  EXPECT_EQ(access->endpoint.ToString(), "https://10.0.0.1:6443");
  EXPECT_EQ(access->tls.authorities.text, "ca");
  EXPECT_EQ(access->tls.certificate.text, "cert");
  EXPECT_EQ(access->tls.key.text, "key");
  EXPECT_EQ(access->token + access->token_file + access->tls.server_name, "");
}

TEST_F(KubeConfigTest, AnotherContext) {
  auto access = Find(kKubeconfig, "node@two");
  ASSERT_TRUE(access) << Describe(access.error());
  EXPECT_EQ(access->endpoint.host, "fd00::1");
  EXPECT_EQ(access->tls.authorities.file, root_.directory() + "/etc/kube/pki/ca.crt");
  EXPECT_EQ(access->tls.server_name, "kubernetes");
  EXPECT_EQ(access->token_file, root_.directory() + "/run/token");
  EXPECT_EQ(access->token, "true");
}

TEST_F(KubeConfigTest, JsonIsTakenToo) {
  auto access = Find(
      R"({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
          "clusters": [{"name": "k", "cluster": {"server": "https://a:1"}}],
          "users": [{"name": "u", "user": {"token": "t"}}]})");
  ASSERT_TRUE(access) << Describe(access.error());
  EXPECT_EQ(access->token, "t");
}

TEST_F(KubeConfigTest, WhatIsMissingOrNotForUsIsNamed) {
  ASSERT_TRUE(Find(With("{}: {}", "{}: {}"))) << "the file that the others are made of";
  ExpectRefusal(With("insecure-skip-tls-verify: true", ""), "/clusters/0/cluster/insecure-skip-tls-verify");
  ExpectRefusal(With("proxy-url: http://p", ""), "/clusters/0/cluster/proxy-url");
  ExpectRefusal(With("certificate-authority-data: '!'", ""), "certificate-authority-data: is not base64");
  ExpectRefusal(With("", "exec: {command: aws}"), "programs that fetch credentials are not run");
  ExpectRefusal(With("", "auth-provider: {name: gcp}"), "/users/0/user/auth-provider");
  ExpectRefusal(With("", "username: root"), "/users/0/user/username");
  ExpectRefusal(With("", "as: root"), "/users/0/user/as");
  ExpectRefusal("current-context: c", "has no context 'c'");
  ExpectRefusal("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]",
                "cluster 'k' does not exist");
  ExpectRefusal("contexts: 7", "contexts");
  ExpectRefusal("a: [b", "config:1: no YAML");
  ExpectRefusal("- a", "is not an object");
  KubeConfig config;
  config.kubeconfig = "/nothing";
  EXPECT_NE(FindKubeAccess(root_.root(), config, {}).error().message.find("no such file"), std::string::npos);
}

TEST_F(KubeConfigTest, AliasesCannotGrowWithoutEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += last + ", ";
    text += "]\n";
  }
  ExpectRefusal(text, "too large");
}

TEST_F(KubeConfigTest, InAPod) {
  auto access = FindKubeAccess(root_.root(), {}, {"10.96.0.1", "443"});
  ASSERT_TRUE(access) << Describe(access.error());
  EXPECT_EQ(access->endpoint.ToString(), "https://10.96.0.1:443");
  EXPECT_EQ(access->tls.authorities.file,
            root_.directory() + "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
  EXPECT_EQ(FindKubeAccess(root_.root(), {}, {"fd00::1", "443"})->endpoint.ToString(),
            "https://[fd00::1]:443");
  auto outside = FindKubeAccess(root_.root(), {}, {});
  ASSERT_FALSE(outside);
  EXPECT_FALSE(outside.error().hint.empty());
}

}  // namespace
}  // namespace railhead::testing
