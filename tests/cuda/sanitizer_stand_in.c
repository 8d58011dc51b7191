/* Stands for a library of compute-sanitizer, by its name alone. */
int acs_tests_sanitizer_stand_in(void);

int acs_tests_sanitizer_stand_in(void)
{
    return 0;
}
