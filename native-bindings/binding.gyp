{
  "targets": [
    {
      "target_name": "shared_region",
      "sources": ["shared_region.c"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE", "_FILE_OFFSET_BITS=64"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "descriptor_socket",
      "sources": ["descriptor_socket.c"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "send_datagram",
      "sources": ["send_datagram.c"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "check_updates",
      "sources": ["check_updates.c"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "split_pairs",
      "sources": ["split_pairs.c"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "encode_records",
      "sources": ["encode_records.c"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "hash_keys",
      "sources": ["hash_keys.c"],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    },
    {
      "target_name": "certificate_limits",
      "sources": ["certificate_limits.c"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    }
  ]
}
