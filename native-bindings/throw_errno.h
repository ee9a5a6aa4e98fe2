/* Throws the error of a system call: its text says what failed and why, and `errno` is negative as in node:fs. */
#ifndef THROW_ERRNO_H
#define THROW_ERRNO_H

#include <node_api.h>
#include <stdio.h>
#include <string.h>

static napi_value throw_errno(napi_env env, const char* action, int number) {
  char text[512];
  napi_value message, error, errno_value;
  snprintf(text, sizeof text, "%s: %s", action, strerror(number));
  if (napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message) == napi_ok &&
      napi_create_error(env, NULL, message, &error) == napi_ok &&
      napi_create_int32(env, -number, &errno_value) == napi_ok &&
      napi_set_named_property(env, error, "errno", errno_value) == napi_ok) {
    napi_throw(env, error);
  }
  return NULL;
}

#endif
