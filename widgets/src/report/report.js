// The script of a report: the notebook's own widgets, drawn from the data in the page.

import { startReport } from "./page.js";

startReport(document);
