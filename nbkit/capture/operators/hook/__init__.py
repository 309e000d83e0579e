"""ophook: any recorder around the calls of chosen functions only."""
