#include "cron/schedule.h"

#include "base/value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECOND,
    MINUTE,
    HOUR,
    DAY,
    MONTH,
    WEEKDAY,
    FIELDS,
    WORD_MAX = 256,
    HORIZON_DAYS = 15000,   /* 29 February on one day of the week: 40 years at most */
    MARGIN_S = 16 * 3600,   /* no zone was ever further from UTC */
    PROBE_S = 8 * 3600,     /* a zone's offset changes at most once in this time */
    SET_BACK_S = 25 * 3600, /* no clock was ever set back by more */
};

static const char months[] = "jan feb mar apr may jun jul aug sep oct nov dec";
static const char weekdays[] = "sun mon tue wed thu fri sat";

struct field {
    const char *name;
    unsigned low, high; /* of a number */
    const char *names;  /* of the numbers from `low` on, in three letters each; NULL: none */
};

static const struct field fields[FIELDS] = {
    [SECOND] = {"second", 0, 59, NULL}, [MINUTE] = {"minute", 0, 59, NULL},
    [HOUR] = {"hour", 0, 23, NULL},     [DAY] = {"day of the month", 1, 31, NULL},
    [MONTH] = {"month", 1, 12, months}, [WEEKDAY] = {"day of the week", 0, 7, weekdays},
};

/* ---- Reading a field ------------------------------------------------------------------------- */

static int refuse(const struct field *field, const char *word, const char *why,
                  struct baton_error *reterr)
{
    return error_set(reterr, BATON_EINVAL, "%s '%s': %s", field->name, word, why);
}

static bool take_name(const struct field *field, const char **text, unsigned *ret)
{
    const char *at = field->names;

    if (!at || !isalpha((unsigned char)(*text)[0]) || !isalpha((unsigned char)(*text)[1]) ||
        !isalpha((unsigned char)(*text)[2]) || isalpha((unsigned char)(*text)[3])) {
        return false;
    }
    for (unsigned number = field->low; *at; number++) {
        if (tolower((unsigned char)(*text)[0]) == at[0] &&
            tolower((unsigned char)(*text)[1]) == at[1] &&
            tolower((unsigned char)(*text)[2]) == at[2]) {
            *ret = number;
            *text += 3;
            return true;
        }
        at += at[3] ? 4 : 3;
    }
    return false;
}

/* At most three digits, so that no number overflows. */
static bool take_number(const char **text, unsigned *ret)
{
    unsigned number = 0, digits = 0;

    while (isdigit((unsigned char)**text) && digits < 4) {
        number = number * 10 + (unsigned)(*(*text)++ - '0');
        digits++;
    }
    *ret = number;
    return digits > 0 && digits < 4;
}

static bool take_value(const struct field *field, const char **text, unsigned *ret)
{
    return take_name(field, text, ret) || take_number(text, ret);
}

/* One of the parts between commas. Of the week, day 7 becomes 0. */
static int take_part(const struct field *field, const char *word, const char **text, uint64_t *bits,
                     struct baton_error *reterr)
{
    unsigned from = field->low, to = field->high, step = 1;
    bool is_star = **text == '*', is_range = is_star;

    if (is_star) {
        (*text)++;
        to -= field->names == weekdays;
    } else if (!take_value(field, text, &from)) {
        return refuse(field, word,
                      "give *, numbers, ranges (1-5) and steps (*/2), with commas "
                      "between them and no blanks",
                      reterr);
    } else {
        to = from;
    }
    if (!is_star && **text == '-') {
        is_range = true;
        (*text)++;
        if (!take_value(field, text, &to)) {
            return refuse(field, word, "the range has no end", reterr);
        }
        to += field->names == weekdays && to == 0 && from > 0 ? 7 : 0; /* fri-sun */
    }
    if (from < field->low || to > field->high || from > to) {
        return error_set(reterr, BATON_EINVAL, "%s '%s': must be from %u to %u%s", field->name,
                         word, field->low, field->high,
                         from > to ? ", and a range begins with the smaller number" : "");
    }
    if (**text == '/') {
        (*text)++;
        if (!is_range) {
            return refuse(field, word, "a step needs a range before it: */5 or 10-50/5", reterr);
        }
        if (!take_number(text, &step) || step == 0 || step > to - from) {
            return refuse(field, word,
                          "the step must be a number from 1 to the length of its range", reterr);
        }
    }
    for (unsigned number = from; number <= to; number += step) {
        *bits |= UINT64_C(1) << (field->names == weekdays ? number % 7 : number);
    }
    return BATON_OK;
}

static int read_field(const struct field *field, const char *word, uint64_t *ret,
                      struct baton_error *reterr)
{
    const char *at = word;
    uint64_t bits = 0;

    for (;;) {
        int code = take_part(field, word, &at, &bits, reterr);
        if (code) {
            return code;
        }
        if (*at == '\0') {
            *ret = bits;
            return BATON_OK;
        }
        if (*at++ != ',') {
            return refuse(field, word,
                          "give *, numbers, ranges (1-5) and steps (*/2), with commas "
                          "between them and no blanks",
                          reterr);
        }
    }
}

/* ---- Reading a schedule ---------------------------------------------------------------------- */

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t';
}

/* Takes the next word, and the blanks after it. False: there is none, or it is too long. */
static bool take_word(const char **text, char ret[WORD_MAX])
{
    size_t bytes = strcspn(*text, " \t");

    if (bytes == 0 || bytes >= WORD_MAX) {
        return false;
    }
    memcpy(ret, *text, bytes);
    ret[bytes] = '\0';
    *text += bytes;
    while (is_blank(**text)) {
        (*text)++;
    }
    return true;
}

static bool reads_as_weekday(const char *text)
{
    char word[WORD_MAX];
    uint64_t ignored;

    return take_word(&text, word) && read_field(&fields[WEEKDAY], word, &ignored, NULL) == BATON_OK;
}

static bool never_fires(const struct cron_schedule *schedule)
{
    static const struct calendar_zone utc;

    return cron_next(schedule, &utc, 0) == INT64_MAX;
}

static int read_fields(struct cron_schedule *ret, const char *text, const char **ret_rest,
                       struct baton_error *reterr)
{
    struct cron_schedule schedule = {.seconds = 1};
    uint64_t *const bits[FIELDS] = {&schedule.seconds, &schedule.minutes, &schedule.hours,
                                    &schedule.days,    &schedule.months,  &schedule.weekdays};
    const char *sixth = text;
    char word[WORD_MAX];
    int code = BATON_OK;

    for (int i = MINUTE; i < FIELDS && take_word(&sixth, word); i++) {
    }
    for (int i = reads_as_weekday(sixth) ? SECOND : MINUTE; i < FIELDS && !code; i++) {
        if (!take_word(&text, word)) {
            return error_set(reterr, BATON_EINVAL,
                             "the %s is missing: a line begins with minute, hour, day of the "
                             "month, month and day of the week",
                             fields[i].name);
        }
        schedule.is_interval |= i == HOUR && word[0] == '*';
        schedule.is_any_day |= i == DAY && word[0] == '*';
        schedule.is_any_weekday |= i == WEEKDAY && word[0] == '*';
        code = read_field(&fields[i], word, bits[i], reterr);
    }
    if (!code && never_fires(&schedule)) {
        code = error_set(reterr, BATON_EINVAL, "the schedule never fires: there is no such date");
    }
    if (!code) {
        *ret = schedule;
        *ret_rest = text;
    }
    return code;
}

static int read_every(struct cron_schedule *ret, const char *text, const char **ret_rest,
                      struct baton_error *reterr)
{
    char word[WORD_MAX];
    span period;

    if (!take_word(&text, word)) {
        return error_set(reterr, BATON_EINVAL, "@every: give a time, as in @every 90s");
    }
    int code = value_duration(word, &period, reterr);
    if (code) {
        (void)error_wrap(reterr, "@every");
        return code;
    }
    if (period.ns < 1000000000 || period.ns % 1000000000 != 0) {
        return error_set(reterr, BATON_EINVAL, "@every %s: must be whole seconds, 1s at least",
                         word);
    }
    *ret = (struct cron_schedule){.every_s = period.ns / 1000000000, .is_interval = true};
    *ret_rest = text;
    return BATON_OK;
}

static int read_nickname(struct cron_schedule *ret, const char *text, const char **ret_rest,
                         struct baton_error *reterr)
{
    static const char *const nicknames[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    const char *ignored;
    char word[WORD_MAX];

    if (!take_word(&text, word)) {
        return error_set(reterr, BATON_EINVAL, "the word that begins with @ is too long");
    }
    if (strcmp(word, "@every") == 0) {
        return read_every(ret, text, ret_rest, reterr);
    }
    for (size_t i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++) {
        if (strcmp(word, nicknames[i][0]) == 0) {
            *ret_rest = text;
            return read_fields(ret, nicknames[i][1], &ignored, reterr);
        }
    }
    return error_set(reterr, BATON_EINVAL,
                     "'%s': there are @every TIME, @hourly, @daily, @midnight, @weekly, @monthly, "
                     "@yearly and @annually",
                     word);
}

int cron_schedule_parse(struct cron_schedule *ret, const char *text, const char **ret_rest,
                        struct baton_error *reterr)
{
    return *text == '@' ? read_nickname(ret, text, ret_rest, reterr)
                        : read_fields(ret, text, ret_rest, reterr);
}

/* ---- Local times ----------------------------------------------------------------------------- */

static bool has(uint64_t bits, unsigned number)
{
    return (bits >> number & 1) != 0;
}

static bool fits_date(const struct cron_schedule *schedule, int64_t day)
{
    struct calendar_date date = calendar_date(day);
    bool fits_day = has(schedule->days, date.day);
    bool fits_weekday = has(schedule->weekdays, calendar_weekday(day));

    if (!has(schedule->months, date.month)) {
        return false;
    }
    return schedule->is_any_day || schedule->is_any_weekday ? fits_day && fits_weekday
                                                            : fits_day || fits_weekday;
}

/* The first second of the day, from `from` to before `to`, that fits; -1: none. */
static int64_t fitting_second(const struct cron_schedule *schedule, int64_t from, int64_t to)
{
    for (int64_t at = from; at < to;) {
        unsigned hour = (unsigned)(at / 3600), minute = (unsigned)(at / 60 % 60);
        if (!has(schedule->hours, hour)) {
            at = (int64_t)(hour + 1) * 3600;
        } else if (!has(schedule->minutes, minute)) {
            at = (at / 60 + 1) * 60;
        } else if (!has(schedule->seconds, (unsigned)(at % 60))) {
            at++;
        } else {
            return at;
        }
    }
    return -1;
}

/* ---- Instants of one date -------------------------------------------------------------------- */

struct search {
    const struct cron_schedule *schedule;
    const struct calendar_zone *zone;
    int64_t after_s;
    int64_t midnight; /* of the date, in local seconds since 1970 */
    int64_t found_s;  /* the earliest; INT64_MAX: none */
};

static int64_t offset_at(const struct calendar_zone *zone, int64_t at_s)
{
    return zone->offset ? zone->offset(zone->userdata, at_s) : 0;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#define NONE INT64_MIN

/* The first fitting local time of the date in this range; NONE. */
static int64_t fitting_local(const struct search *search, int64_t from, int64_t to)
{
    int64_t second = fitting_second(search->schedule, greater(from - search->midnight, 0),
                                    lesser(to - search->midnight, CALENDAR_DAY_S));
    return second < 0 ? NONE : search->midnight + second;
}

/* Local clocks show these times, one after the other, at a constant offset. */
static void take_shown(struct search *search, int64_t from, int64_t to, int64_t offset)
{
    int64_t local = fitting_local(search, greater(from, search->after_s + offset + 1), to);

    if (local != NONE && local - offset < search->found_s) {
        search->found_s = local - offset;
    }
}

/* Local clocks never show these: they are set forward at `at_s`. */
static void take_left_out(struct search *search, int64_t from, int64_t to, int64_t at_s)
{
    if (at_s > search->after_s && at_s < search->found_s &&
        fitting_local(search, from, to) != NONE) {
        search->found_s = at_s;
    }
}

/* The end of the time from `at_s` on with the same offset, not later than `limit_s`. */
static int64_t end_of_offset(const struct calendar_zone *zone, int64_t at_s, int64_t limit_s)
{
    int64_t offset = offset_at(zone, at_s), same_s = at_s, other_s = at_s;

    do {
        same_s = other_s;
        other_s = lesser(other_s + PROBE_S, limit_s);
    } while (same_s < limit_s && offset_at(zone, other_s) == offset);
    if (same_s >= limit_s) {
        return limit_s;
    }
    while (other_s - same_s > 1) {
        int64_t middle_s = same_s + (other_s - same_s) / 2;
        if (offset_at(zone, middle_s) == offset) {
            same_s = middle_s;
        } else {
            other_s = middle_s;
        }
    }
    return other_s;
}

static void search_date(struct search *search)
{
    bool is_interval = search->schedule->is_interval;
    int64_t at_s = greater(search->midnight - MARGIN_S, search->after_s - SET_BACK_S), end_s;
    int64_t limit_s = search->midnight + CALENDAR_DAY_S + MARGIN_S;
    int64_t shown = at_s + offset_at(search->zone, at_s); /* local times before it are past */

    for (; at_s < limit_s && at_s < search->found_s; at_s = end_s) {
        int64_t offset = offset_at(search->zone, at_s);
        int64_t from = at_s + offset;
        end_s = end_of_offset(search->zone, at_s, limit_s);
        if (!is_interval && from > shown) {
            take_left_out(search, shown, from, at_s);
        }
        take_shown(search, is_interval ? from : greater(from, shown), end_s + offset, offset);
        shown = greater(shown, end_s + offset);
    }
}

/* ---- Instants -------------------------------------------------------------------------------- */

/* A date's last local times may come after the next date's first ones, where clocks are set back
 * over midnight; so the date after the one that was found is looked at, too. */
int64_t cron_next(const struct cron_schedule *schedule, const struct calendar_zone *zone,
                  int64_t after_s)
{
    struct search search = {
        .schedule = schedule, .zone = zone, .after_s = after_s, .found_s = INT64_MAX};
    int64_t day = calendar_divide(after_s, CALENDAR_DAY_S) - 1;
    int64_t last_day = day + HORIZON_DAYS;

    if (schedule->every_s > 0) {
        return (calendar_divide(after_s, schedule->every_s) + 1) * schedule->every_s;
    }
    for (; day <= last_day; day++) {
        if (fits_date(schedule, day)) {
            search.midnight = day * CALENDAR_DAY_S;
            search_date(&search);
        }
        last_day = search.found_s < INT64_MAX ? lesser(last_day, day + 1) : last_day;
    }
    return search.found_s;
}

int64_t cron_latest(const struct cron_schedule *schedule, const struct calendar_zone *zone,
                    int64_t after_s, int64_t until_s)
{
    int64_t low_s = after_s, high_s = until_s; /* the next one is not later than until_s: after low,
                                                * and not after high */
    if (after_s >= until_s || cron_next(schedule, zone, after_s) > until_s) {
        return INT64_MAX;
    }
    while (high_s - low_s > 1) {
        int64_t middle_s = low_s + (high_s - low_s) / 2;
        if (cron_next(schedule, zone, middle_s) <= until_s) {
            low_s = middle_s;
        } else {
            high_s = middle_s;
        }
    }
    return cron_next(schedule, zone, low_s);
}
