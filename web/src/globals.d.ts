// uPlot is a classic script, shared with the pages of reports: it defines a global.
declare const uPlot: typeof import("uplot").default;
