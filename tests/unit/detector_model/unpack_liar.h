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
    LIE_ERROR,      /* with letters that a terminal obeys */
    LIE_GOOD_ERROR, /* an error whose code is none */
    LIE_BAD_PIPELINE,
    LIE_NO_SIZE,
    LIE_TWO_SIZES,
    LIE_NO_DATA,
    LIE_TOO_LARGE, /* the model: a size above the limit, one less and more than comes */
    LIE_SHORT,
    LIE_LONG,
};

#endif
