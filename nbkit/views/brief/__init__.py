"""The brief of a trace: verdict, findings, and what nobody has looked at; summaries and reports open with it."""
