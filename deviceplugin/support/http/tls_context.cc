#include "deviceplugin/support/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <optional>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/files.h"

namespace railhead::http {
namespace {

struct OpensslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, OpensslFree>;
using Certificate = std::unique_ptr<X509, OpensslFree>;
using Key = std::unique_ptr<EVP_PKEY, OpensslFree>;

// Without it OpenSSL asks for an encrypted key's password on the terminal.
int NoPassword(char*, int, int, void*) {
  return 0;
}

std::string NameOfPem(const Pem& pem, const std::string& what) {
  return pem.file.empty() ? what : what + " " + pem.file;
}

Result<std::string> TextOf(const Pem& pem, const std::string& what) {
  if (pem.file.empty()) return pem.text;
  // Not as a file of root's: kubelet chooses owner and mode of what lies beside a token.
  auto text = RH_TRY_WRAP(ReadFile(pem.file), "reading the " + what);
  if (!text) {
    return Fail(ErrorCode::kInvalid, "reading the " + what + " " + pem.file + ": no such file",
                "put it there, or name another one");
  }
  return std::move(*text);
}

Result<std::vector<Certificate>> ReadCertificates(const Pem& pem, const std::string& what) {
  const std::string text = RH_TRY(TextOf(pem, what));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::vector<Certificate> certificates;
  while (bio != nullptr) {
    Certificate one(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (one == nullptr) break;
    certificates.push_back(std::move(one));
  }
  ERR_clear_error();
  if (certificates.empty()) {
    return Fail(ErrorCode::kInvalid, "reading the " + NameOfPem(pem, what) + ": no certificate in PEM in it",
                "give a file with -----BEGIN CERTIFICATE----- in it");
  }
  return certificates;
}

Result<void> UseAuthorities(SSL_CTX* context, const Pem& pem) {
  if (pem.empty()) {
    return Fail(ErrorCode::kInvalid, "no certificate authority is given for an https:// endpoint",
                "name the file of the authority that signed the server's certificate; the machine's own list "
                "is not used");
  }
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const Certificate& one : RH_TRY(ReadCertificates(pem, "certificate authority"))) {
    // A duplicate is not an error.
    X509_STORE_add_cert(store, one.get());
    ERR_clear_error();
  }
  // Every certificate in the file is trusted, even if it is not a root.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

Result<void> UseIdentity(SSL_CTX* context, const Pem& certificate, const Pem& key) {
  if (certificate.empty()) return {};
  const auto chain = RH_TRY(ReadCertificates(certificate, "client certificate"));
  bool good = SSL_CTX_use_certificate(context, chain.front().get()) == 1;
  for (std::size_t i = 1; good && i < chain.size(); ++i) {
    good = SSL_CTX_add1_chain_cert(context, chain[i].get()) == 1;
  }
  if (!good) {
    return Fail(ErrorCode::kInvalid,
                "using the " + NameOfPem(certificate, "client certificate") + ": " + TakeTlsError());
  }
  const std::string text = RH_TRY(TextOf(key, "client key"));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Key parsed(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (parsed == nullptr) {
    return Fail(ErrorCode::kInvalid,
                "reading the " + NameOfPem(key, "client key") + ": no private key in PEM without a password",
                "give a file with -----BEGIN PRIVATE KEY----- in it");
  }
  if (SSL_CTX_use_PrivateKey(context, parsed.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Fail(ErrorCode::kInvalid,
                NameOfPem(key, "client key") + " is not the key of " +
                    NameOfPem(certificate, "client certificate") + ": " + TakeTlsError(),
                "give the two that were made together");
  }
  return {};
}

bool IsAboutIdentity(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string TakeTlsError() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  std::string text = reason != nullptr ? reason : "unknown error";
  ERR_clear_error();
  return text;
}

Error TlsFailure(const SSL* session, const std::string& what) {
  const int64_t verified = SSL_get_verify_result(session);
  if (verified != X509_V_OK) {
    ERR_clear_error();
    return {
        ErrorCode::kPermission,
        what + ": the server's certificate is not trusted: " + X509_verify_cert_error_string(verified),
        "see that the certificate authority given is the server's, that the certificate names the host of "
        "the endpoint, and that the clocks are right",
        0};
  }
  if (IsAboutIdentity(ERR_GET_REASON(ERR_peek_error()))) {
    return {ErrorCode::kPermission, what + ": the server does not accept our certificate: " + TakeTlsError(),
            "give a client certificate that is signed by an authority the server trusts", 0};
  }
  return {ErrorCode::kUnavailable, what + ": " + TakeTlsError(), "", 0};
}

Result<TlsContext> MakeTlsContext(const TlsSettings& settings) {
  // This machine's openssl.cnf is for its own library, and may load that library's modules.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Fail(ErrorCode::kInternal, "starting TLS: " + TakeTlsError());
  }
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  RH_TRY(UseAuthorities(context.get(), settings.authorities));
  RH_TRY(UseIdentity(context.get(), settings.certificate, settings.key));
  return context;
}

Result<TlsSession> MakeTlsSession(const TlsContext& context, int fd, const std::string& name) {
  TlsSession session(SSL_new(context.get()));
  bool good = session != nullptr && SSL_set_fd(session.get(), fd) == 1;
  if (good && IpAddress::Parse(name)) {
    good = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), name.c_str()) == 1;
  } else if (good) {
    // NOLINTNEXTLINE(google-readability-casting): OpenSSL's macro
    good = SSL_set1_host(session.get(), name.c_str()) == 1 &&
           SSL_set_tlsext_host_name(session.get(), name.c_str()) == 1;
  }
  if (!good) return Fail(ErrorCode::kInternal, "starting TLS to " + name + ": " + TakeTlsError());
  return session;
}

}  // namespace railhead::http
