// Telling documents apart, and errors in them.
#include "deviceplugin/tools/migrate/documents.h"

#include "tests/unit/deviceplugin/tools/migrate/suite.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

std::string ErrorOf(const std::string& text) {
  migrate::Documents documents;
  const auto added = migrate::AddDocuments(text, "nads.json", &documents);
  return added ? "" : added.error().message;
}

TEST(Documents, BrokenConfigNamesNetworkKeyAndByte) {
  EXPECT_EQ(ErrorOf(NetworkObject("net", "", R"({"type": "sriov" "vlan": 3})").dump()),
            "nads.json: NetworkAttachmentDefinition train/net: /spec/config: no valid JSON at byte 23 near "
            "'\"vlan\"'");
  EXPECT_NE(ErrorOf(NetworkObject("net", "", R"({"vlan": 3, "vlan": 4})").dump())
                .find("/spec/config: /vlan: is there twice"),
            std::string::npos);
  EXPECT_NE(ErrorOf(NetworkObject("net", "", "[]").dump()).find("train/net: /spec/config: "),
            std::string::npos);
  EXPECT_NE(ErrorOf("{").find("nads.json: no valid JSON"), std::string::npos);
  EXPECT_NE(ErrorOf("a: [").find("nads.json:"), std::string::npos);
  for (const char* text : {",", ", \"ka", "a: 1\n---\n]", "}"})
    EXPECT_NE(ErrorOf(text).find("no YAML"), std::string::npos) << text;
}

TEST(Documents, NamesAreThoseOfKubernetes) {
  for (const char* name : {"", "../../etc/x", "a/b", "A", ".hidden"}) {
    EXPECT_NE(ErrorOf(NetworkObject(name, "", "{}").dump()).find("has no name"), std::string::npos) << name;
  }
}

TEST(Documents, YamlWithSeveralDocuments) {
  const auto documents = DocumentsOf({R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: sriovdp-config, namespace: kube-system}
data:
  config.json: |
    {"resourceList": []}
  notes: hello
---
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: net
spec:
  config: '{"type": "sriov", "vlan": 7}'
---
kind: Pod
metadata: {name: p}
)"});
  ASSERT_EQ(documents.device_configs.size(), 1U);
  EXPECT_EQ(documents.device_configs[0].source, "input: ConfigMap kube-system/sriovdp-config: config.json");
  EXPECT_EQ(documents.device_configs[0].text, "{\"resourceList\": []}\n");
  ASSERT_EQ(documents.networks.size(), 1U);
  EXPECT_EQ(documents.networks[0].object["spec"]["config"]["vlan"], 7);
  ASSERT_EQ(documents.untouched.size(), 1U);
  EXPECT_EQ(documents.untouched[0], "input: Pod p: is not part of the SR-IOV suite");
}

TEST(Documents, ListsAsKubectlPrintsThem) {
  const Json list = {{"kind", "NetworkAttachmentDefinitionList"},
                     {"items", {NetworkObject("a", "", "{}"), NetworkObject("b", "", "{}")}}};
  EXPECT_EQ(DocumentsOf({list.dump()}).networks.size(), 2U);
  EXPECT_EQ(DocumentsOf({R"({"ResourceList": []})"}).device_configs.size(), 1U);
}

}  // namespace
}  // namespace railhead::testing
