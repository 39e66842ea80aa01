/* A false invariant ends the process, in release builds too, with the condition's text. */
#ifndef BASE_INVARIANT_H
#define BASE_INVARIANT_H

#define INVARIANT(condition)                                                                       \
    ((condition) ? (void)0 : invariant_failed(#condition, __FILE__, __LINE__))

void invariant_failed(const char *text, const char *file, int line) __attribute__((noreturn));

#endif
