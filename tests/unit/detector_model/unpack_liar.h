/* What unpack_liar can be asked for: it is the first byte of its archive. */
#ifndef TESTS_UNPACK_LIAR_H
#define TESTS_UNPACK_LIAR_H

enum lie {
    LIE_NONE,
    LIE_NOTHING, /* ends without a word */
    LIE_CRASH,
    LIE_SILENT,
    LIE_CLOSED, /* closes its socket and lives */
    LIE_HALF_HEAD,
    LIE_ERROR, /* with letters that a terminal obeys, and a code that is none of ours */
    LIE_CODE,  /* above 0 */
    LIE_LONG_ERROR,
    LIE_BAD_PIPELINE,
    LIE_LONG_PIPELINE,
    LIE_ENDLESS, /* the model */
    LIE_TORN,    /* ends within the model */
};

#endif
