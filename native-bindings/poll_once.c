/*
 * Stops the event loop from measuring how long it is idle. Plain N-API.
 *
 * Node.js always measures that, for performance.eventLoopUtilization(), which this server does not use. For it, libuv asks
 * the system twice in each turn in which nothing is ready: once without waiting and once with. A quiet server has a turn for
 * nearly everything it does. libuv can begin to measure and not stop, so this clears its flag: the first word of what the
 * public `internal_fields` of the loop points to, since libuv 1.38.
 *
 *   pollOnce() -> boolean
 *       Returns false, and has changed nothing, if that word is not what it is in a loop that measures and has no other
 *       setting.
 */
#include <node_api.h>
#include <uv.h>

static napi_value poll_once(napi_env env, napi_callback_info info) {
  (void)info;
  uv_loop_t* loop;
  napi_value result;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) return NULL;
  unsigned int* flags = loop->internal_fields;
  int is_measuring = flags != NULL && *flags == UV_METRICS_IDLE_TIME;
  if (is_measuring) *flags = 0;
  return napi_get_boolean(env, is_measuring, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "pollOnce", NAPI_AUTO_LENGTH, poll_once, NULL, &function) ==
      napi_ok) {
    napi_set_named_property(env, exports, "pollOnce", function);
  }
  return exports;
}
