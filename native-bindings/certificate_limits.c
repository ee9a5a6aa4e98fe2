/*
 * Limits what the certificates of a TLS server can cost this process. Uses plain N-API and OpenSSL's public
 * functions.
 * Node.js has no such option. It verifies a complete chain on the event loop, even if no certificate in it is
 * trusted: 99 certificates with keys on the curve sect571r1 took 0.5 s of CPU time.
 *
 *   limitCertificates(bytesMax, countMax, rsaBitsMax)
 *       Applies to every SSL_CTX that any code in this process creates from now on. A handshake with more than bytesMax
 *       of certificates fails with SSL_R_EXCESSIVE_MESSAGE_SIZE before they are read. A handshake with more than
 *       countMax certificates, or with a kind of key not listed below, fails with SSL_R_CERTIFICATE_VERIFY_FAILED
 *       before any signature is verified; Node.js itself never ends a handshake with that error. Only the first call
 *       has an effect.
 *
 *           RSA and RSA-PSS     up to rsaBitsMax, with an exponent of up to 64 bits
 *           EC                  P-256, P-384 and P-521
 *           Ed25519, Ed448
 *
 *       If the server sends more than messages_max handshake messages on a connection, the connection reads as if the
 *       server had closed it. A HelloRequest (TLS 1.2) or a KeyUpdate costs the server 35 bytes and costs Node.js
 *       50 us, and Node.js does not notify JavaScript, which could otherwise end the connection. A stream of these
 *       messages kept a worker busy until it was killed.
 *
 * OpenSSL announces each new context through the callback of an extra-data index. This is the only way to reach the
 * contexts that Node.js creates. OpenSSL calls it after the context has its default values (SSL_CTX_new of OpenSSL
 * 3.0 to 3.5).
 */
#include <node_api.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <string.h>

static long bytes_max;
static int count_max;
static int rsa_bits_max;
static int messages_index;
enum { exponent_bits_max = 64 };
/* A full handshake has 8 messages. delivery/endpoint/connector.ts accepts at most 16 session tickets. A KeyUpdate is rare. */
enum { messages_max = 64 };

static int is_rsa_cheap(EVP_PKEY* key) {
  BIGNUM* exponent = NULL;
  if (EVP_PKEY_get_bits(key) > rsa_bits_max) return 0;
  if (!EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent)) return 0;
  int is_cheap = BN_num_bits(exponent) <= exponent_bits_max;
  BN_free(exponent);
  return is_cheap;
}

static int is_curve_cheap(EVP_PKEY* key) {
  char name[32];
  size_t length;
  if (!EVP_PKEY_get_group_name(key, name, sizeof name, &length)) return 0;
  return strcmp(name, "prime256v1") == 0 || strcmp(name, "secp384r1") == 0 ||
         strcmp(name, "secp521r1") == 0;
}

static int is_cheap(X509* certificate) {
  /* NULL if the key cannot be parsed. */
  EVP_PKEY* key = X509_get0_pubkey(certificate);
  if (key == NULL) return 0;
  if (EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "RSA-PSS")) return is_rsa_cheap(key);
  if (EVP_PKEY_is_a(key, "EC")) return is_curve_cheap(key);
  return EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448");
}

static int are_cheap(const STACK_OF(X509) * certificates) {
  int count = sk_X509_num(certificates);
  if (count > count_max) return 0;
  for (int index = 0; index < count; index++) {
    if (!is_cheap(sk_X509_value(certificates, index))) return 0;
  }
  return 1;
}

/* Replaces X509_verify_cert, and calls it for chains that are within the limits. */
static int verify(X509_STORE_CTX* context, void* unused) {
  (void)unused;
  if (are_cheap(X509_STORE_CTX_get0_untrusted(context))) return X509_verify_cert(context);
  X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_CHAIN_TOO_LONG);
  SSL* ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx());
  /* Node.js completes every handshake and checks the verdict afterwards. This handshake must fail now. */
  if (ssl != NULL) SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
  return 0;
}

static void on_message(int is_sent, int version, int type, const void* bytes, size_t length,
                       SSL* ssl, void* unused) {
  (void)version, (void)bytes, (void)length, (void)unused;
  if (is_sent || type != SSL3_RT_HANDSHAKE) return;
  uintptr_t count = (uintptr_t)SSL_get_ex_data(ssl, messages_index) + 1;
  SSL_set_ex_data(ssl, messages_index, (void*)count);
  if (count > messages_max) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

static void on_new_context(void* parent, void* value, CRYPTO_EX_DATA* data, int index, long number,
                           void* pointer) {
  (void)value, (void)data, (void)index, (void)number, (void)pointer;
  SSL_CTX* context = parent;
  SSL_CTX_set_max_cert_list(context, bytes_max);
  SSL_CTX_set_cert_verify_callback(context, verify, NULL);
  SSL_CTX_set_msg_callback(context, on_message);
}

static napi_value limit_certificates(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value args[3];
  int32_t limits[3];
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 3 ||
      napi_get_value_int32(env, args[0], &limits[0]) != napi_ok ||
      napi_get_value_int32(env, args[1], &limits[1]) != napi_ok ||
      napi_get_value_int32(env, args[2], &limits[2]) != napi_ok) {
    napi_throw_type_error(env, NULL, "expected limitCertificates(bytesMax, countMax, rsaBitsMax)");
    return NULL;
  }
  if (bytes_max != 0) return NULL;
  bytes_max = limits[0];
  count_max = limits[1];
  rsa_bits_max = limits[2];
  messages_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
  if (messages_index < 0 ||
      CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, NULL, on_new_context, NULL,
                              NULL) < 0) {
    napi_throw_error(env, NULL, "OpenSSL has no room for another index");
  }
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "limitCertificates", NAPI_AUTO_LENGTH, limit_certificates, NULL,
                           &function) == napi_ok) {
    napi_set_named_property(env, exports, "limitCertificates", function);
  }
  return exports;
}
