/* The part of ONNX Runtime's C interface that is used here. Its functions are a table whose order
 * is fixed and only grows, so its header is not needed: the number is the position in the table. */
#ifndef DETECTOR_INFER_ONNX_API_H
#define DETECTOR_INFER_ONNX_API_H

#include <stddef.h>
#include <stdint.h>

enum {
    ONNX_API_VERSION = 11, /* 1.11, of 2022: the first with all functions used here */
    ONNX_FLOAT32 = 1,
    ONNX_LOG_FATAL = 4,
    ONNX_OPTIMIZE_ALL = 99,
    ONNX_ALLOCATOR_DEVICE = 0, /* not the arena: the memory is the caller's */
    ONNX_MEMORY_DEFAULT = 0,
};

struct onnx_status;
struct onnx_env;
struct onnx_options;
struct onnx_session;
struct onnx_value;
struct onnx_memory;
struct onnx_allocator;
struct onnx_type;
struct onnx_tensor_type;

/* X(position, result, name, parameters). A status other than NULL is an error. */
#define ONNX_CALLS(X)                                                                              \
    X(2, const char *, error_message, (const struct onnx_status *))                                \
    X(3, struct onnx_status *, create_env, (int level, const char *id, struct onnx_env **ret))     \
    X(8, struct onnx_status *, create_session,                                                     \
      (const struct onnx_env *, const void *model, size_t bytes, const struct onnx_options *,      \
       struct onnx_session **ret))                                                                 \
    X(9, struct onnx_status *, run,                                                                \
      (struct onnx_session *, const void *options, const char *const *input_names,                 \
       const struct onnx_value *const *inputs, size_t inputs_count,                                \
       const char *const *output_names, size_t outputs_count, struct onnx_value **outputs))        \
    X(10, struct onnx_status *, create_options, (struct onnx_options * *ret))                      \
    X(23, struct onnx_status *, set_optimization, (struct onnx_options *, int level))              \
    X(24, struct onnx_status *, set_intra_threads, (struct onnx_options *, int count))             \
    X(25, struct onnx_status *, set_inter_threads, (struct onnx_options *, int count))             \
    X(30, struct onnx_status *, input_count, (const struct onnx_session *, size_t *ret))           \
    X(31, struct onnx_status *, output_count, (const struct onnx_session *, size_t *ret))          \
    X(33, struct onnx_status *, input_type,                                                        \
      (const struct onnx_session *, size_t index, struct onnx_type **ret))                         \
    X(36, struct onnx_status *, input_name,                                                        \
      (const struct onnx_session *, size_t index, struct onnx_allocator *, char **ret))            \
    X(37, struct onnx_status *, output_name,                                                       \
      (const struct onnx_session *, size_t index, struct onnx_allocator *, char **ret))            \
    X(49, struct onnx_status *, create_tensor,                                                     \
      (const struct onnx_memory *, void *data, size_t bytes, const int64_t *sides, size_t rank,    \
       int type, struct onnx_value **ret))                                                         \
    X(51, struct onnx_status *, tensor_data, (struct onnx_value *, void **ret))                    \
    X(55, struct onnx_status *, as_tensor_type,                                                    \
      (const struct onnx_type *, const struct onnx_tensor_type **ret))                             \
    X(60, struct onnx_status *, element_type, (const struct onnx_tensor_type *, int *ret))         \
    X(61, struct onnx_status *, rank, (const struct onnx_tensor_type *, size_t *ret))              \
    X(62, struct onnx_status *, sides,                                                             \
      (const struct onnx_tensor_type *, int64_t *ret, size_t count))                               \
    X(65, struct onnx_status *, value_type,                                                        \
      (const struct onnx_value *, struct onnx_tensor_type **ret))                                  \
    X(69, struct onnx_status *, create_memory,                                                     \
      (int allocator, int type, struct onnx_memory **ret))                                         \
    X(78, struct onnx_status *, default_allocator, (struct onnx_allocator * *ret))                 \
    X(93, void, release_status, (struct onnx_status *))                                            \
    X(96, void, release_value, (struct onnx_value *))                                              \
    X(99, void, release_tensor_type, (struct onnx_tensor_type *))                                  \
    X(130, struct onnx_status *, set_config,                                                       \
      (struct onnx_options *, const char *key, const char *value))

/* A declaration takes no parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define ONNX_MEMBER(place, result, name, parameters) result(*name) parameters;
struct onnx_calls {
    ONNX_CALLS(ONNX_MEMBER)
};
#undef ONNX_MEMBER
/* NOLINTEND(bugprone-macro-parentheses) */

/* The result of OrtGetApiBase(), the one symbol of the library. */
struct onnx_base {
    void (*const *(*table)(uint32_t version))(void);
    const char *(*version)(void);
};

#endif
