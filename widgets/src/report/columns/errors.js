// What goes wrong in answering a question, by the names of the errors that the kernel would answer with.

export class PatternError extends Error {
  name = "PatternError";
}

export class OptionError extends Error {
  name = "OptionError";
}
