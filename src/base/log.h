/* Leveled log: one event with a stable name and key=value fields.
 *
 *   log_info(logger, "leader-changed", LOG_STR("leader", name), LOG_U64("epoch", epoch));
 *
 * The library logs only to a logger of the program; NULL is silent. A logger formats for its
 * target: a person at a terminal, JSON lines, or journald with its priorities. Values from outside
 * are escaped (CR, LF, control characters), so that they cannot forge a line. The code that formats
 * a secret masks it before it comes here.
 *
 * Threads: a logger may be used from any thread; a line is written with one write(2). A line for
 * which a pipe, socket or terminal has no room is left out: a reader of the log that stands still
 * must not stop the program. The next line that is written comes after "log-lines-left-out".
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

enum log_format {
    LOG_FORMAT_HUMAN,   /* 12:00:00.123 warning peer-refused peer=b reason="bad crc" */
    LOG_FORMAT_JSON,    /* {"time":"…","level":"warning","event":"peer-refused","peer":"b"} */
    LOG_FORMAT_JOURNAL, /* <4>peer-refused peer=b reason="bad crc" */
};

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_I64, LOG_FIELD_U64, LOG_FIELD_F64, LOG_FIELD_BOOL } type;
    union {
        const char *str; /* a field whose value is NULL is left out */
        int64_t i64;
        uint64_t u64;
        double f64;
        bool boolean;
    };
};

#define LOG_STR(name, value)                                                                       \
    ((struct log_field){.key = (name), .type = LOG_FIELD_STR, .str = (value)})
#define LOG_I64(name, value)                                                                       \
    ((struct log_field){.key = (name), .type = LOG_FIELD_I64, .i64 = (value)})
#define LOG_U64(name, value)                                                                       \
    ((struct log_field){.key = (name), .type = LOG_FIELD_U64, .u64 = (value)})
#define LOG_F64(name, value)                                                                       \
    ((struct log_field){.key = (name), .type = LOG_FIELD_F64, .f64 = (value)})
#define LOG_BOOL(name, value)                                                                      \
    ((struct log_field){.key = (name), .type = LOG_FIELD_BOOL, .boolean = (value)})

struct logger; /* opaque */

/* Writes to the descriptor `fd` (borrowed) all events up to and including `level`.
 * NULL when out of memory. */
struct logger *logger_new(int fd, enum log_format format, enum log_level level);
void logger_free(struct logger *logger);                         /* NULL allowed */
void log_set_level(struct logger *logger, enum log_level level); /* NULL allowed */

/* The format that suits fd: JSON if asked for, journal if fd leads there (JOURNAL_STREAM), else
 * human. */
enum log_format log_format_for(int fd, bool json);
/* What stands before a line of an error or a warning that is no event: "<3>" for the journal. */
const char *log_prefix(int fd, enum log_level level);

/* "error", "warning", "notice", "info", "debug"; -1 for any other text. */
int log_level_parse(const char *word);

/* Whether an event of that level would be written: to skip costly fields. NULL logger: false. */
bool log_wants(const struct logger *logger, enum log_level level);

/* Writes one event; fields may be NULL when count is 0. NULL logger: nothing. */
void log_emit(struct logger *logger, enum log_level level, const char *event,
              const struct log_field *fields, size_t count);

#define LOG_EVENT(logger, level, event, ...)                                                       \
    do {                                                                                           \
        struct log_field log_fields_[] = {{0}, ##__VA_ARGS__};                                     \
        log_emit((logger), (level), (event), log_fields_ + 1,                                      \
                 sizeof(log_fields_) / sizeof(log_fields_[0]) - 1);                                \
    } while (0)

#define log_error(logger, event, ...)   LOG_EVENT(logger, LOG_ERROR, event, ##__VA_ARGS__)
#define log_warning(logger, event, ...) LOG_EVENT(logger, LOG_WARNING, event, ##__VA_ARGS__)
#define log_notice(logger, event, ...)  LOG_EVENT(logger, LOG_NOTICE, event, ##__VA_ARGS__)
#define log_info(logger, event, ...)    LOG_EVENT(logger, LOG_INFO, event, ##__VA_ARGS__)
#define log_debug(logger, event, ...)   LOG_EVENT(logger, LOG_DEBUG, event, ##__VA_ARGS__)

#endif
