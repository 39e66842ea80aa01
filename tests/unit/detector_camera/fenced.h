/* What fails behind the fences may not be told: it is the process's exit status. */
#ifndef TESTS_DETECTOR_CAMERA_FENCED_H
#define TESTS_DETECTOR_CAMERA_FENCED_H

/* Returns the line, as a status that is neither 0 nor 255. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return __LINE__ % 254 + 1;                                                             \
        }                                                                                          \
    } while (0)

#endif
