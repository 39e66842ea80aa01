/* The program `baton-detector`. */
#include "detector/program/program.h"

int main(int argc, char **argv)
{
    return program_main(&program_about, argc, argv);
}
