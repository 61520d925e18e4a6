// The words of HIP are those of language.h, which stands before every source.
