// uPlot is a classic script, shared with the pages of reports: it defines a global.
declare const uPlot: typeof import("uplot").default;

// Types that most files name.
type ServiceRow = import("./types.js").ServiceRow;
type ServerRow = import("./types.js").ServerRow;
type Frame = import("./types.js").Frame;
type Line = import("./types.js").Line;
type Column = import("./logic/history.js").Column;
type Address = import("./types.js").Address;
type Finding = import("./api.js").Finding;
type Source = import("./source/source.js").Source;
type Condition = import("./types.js").Condition;
type Traffic = import("./api.js").Traffic;
type Board = import("./types.js").Board;
type Page = import("./types.js").Page;
type Reading = import("./source/source.js").Reading;
type HistoryQuery = import("./source/source.js").HistoryQuery;
type Connection = import("./source/source.js").Connection;
type TableColumn<T> = import("./types.js").TableColumn<T>;
type Endpoint = import("./api.js").Endpoint;
type ServiceTraffic = import("./api.js").ServiceTraffic;
type HistoryReading = import("./source/source.js").HistoryReading;
type Outcome = import("./source/source.js").Outcome;
type Recording = import("./types.js").Recording;
type Tile = import("./types.js").Tile;
type Route = import("./types.js").Route;
