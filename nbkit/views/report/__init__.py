"""The report: any traces as one HTML file that opens offline."""
