// The script of a report: the notebook's own widgets, drawn from the data in the page.

import { startReport } from "./report/page.js";
import { useStillPlots } from "./report/still_plots.js";

useStillPlots();
startReport(document);
