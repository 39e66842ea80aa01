/* What unpack_liar can be asked for. */
#ifndef TESTS_UNPACK_LIAR_H
#define TESTS_UNPACK_LIAR_H

enum lie {
    LIE_NONE,
    LIE_NOTHING, /* ends without a word */
    LIE_CRASH,
    LIE_SILENT,
    LIE_CLOSED, /* closes its socket and lives */
    LIE_TYPE,
    LIE_HALF_HEAD,
    LIE_DATA_FIRST,
    LIE_ERROR,      /* with letters that a terminal obeys */
    LIE_GOOD_ERROR, /* an error whose code is none */
    LIE_NO_PIPELINE,
    LIE_BAD_PIPELINE,
    LIE_HIDDEN, /* another pipeline.json behind the first */
    LIE_OUTSIDE,
    LIE_OTHER_FILE,
    LIE_NUL,
    LIE_NO_NAME,
    LIE_TOO_LARGE,
    LIE_SHORT,
    LIE_LONG,
    LIE_NO_MODEL,
    LIE_TWICE,
};

#endif
