import type { CallFilter, UsageReports } from "../../store/usage-reports.ts";
import { viewCall } from "./call-row.ts";
import { callRowSchema, exportQuerySchema, type CallRow } from "../contract/usage.ts";
import {
  defineOperation,
  type Operation,
  type OperationCall,
  permissions,
} from "../operation/operation.ts";
import { requireRoom } from "../operation/room.ts";
import type { AdminServices } from "../services.ts";
import { type CsvValue, csvLine } from "./csv.ts";
import { usageFilter } from "./usage-filter.ts";

const pageRows = 500;
const room = { ofUser: 2, all: 8, what: "exports" };

const columns = callRowSchema.keyof().options;

/** All calls of a period as one text, read from the store page by page as it is written. */
export function exportUsage({ reports, clock }: AdminServices): Operation {
  const open = new Set<OperationCall>();
  return defineOperation({
    id: "exportUsage",
    method: "GET",
    path: "/admin/v1/usage/export",
    resource: "Usage",
    summary: "Export calls, newest first",
    description:
      "CSV with a header line, or one JSON object per line. In CSV, text that a spreadsheet " +
      "would treat as a formula is prefixed with an apostrophe.",
    ...permissions.read,
    query: exportQuerySchema,
    answer: callRowSchema,
    downloads: ["text/csv", "application/x-ndjson"],
    async run({ call, query }) {
      const { filter, isEmpty } = usageFilter(query, call.principal, clock.now());
      requireRoom(open, call.principal, room);
      const pages = isEmpty ? noPages() : readPages(reports, filter, { call, open });
      const isCsv = query.format === "csv";
      return new Response(await streamOf(isCsv ? writeCsv(pages) : writeLines(pages)), {
        headers: {
          "content-type": isCsv ? "text/csv; charset=utf-8" : "application/x-ndjson",
          "content-disposition": `attachment; filename="sluice-usage.${query.format}"`,
        },
      });
    },
  });
}

type Pages = AsyncGenerator<readonly CallRow[]>;

async function* readPages(
  reports: Pick<UsageReports, "calls">,
  filter: CallFilter,
  { call, open }: { readonly call: OperationCall; readonly open: Set<OperationCall> },
): Pages {
  const { signal, principal } = call;
  let after: string | undefined;
  open.add(call);
  try {
    do {
      signal.throwIfAborted();
      const page = await reports.calls(filter, { limit: pageRows, after });
      yield page.items.map((record) => viewCall(record, principal));
      after = page.next;
    } while (after !== undefined);
  } finally {
    open.delete(call);
  }
}

async function* noPages(): Pages {}

async function* writeCsv(pages: Pages): AsyncGenerator<string> {
  // Written with the first page, so that a store that fails at once causes a proper error.
  let head = csvLine(columns);
  for await (const rows of pages) {
    const lines = rows.map((row) => csvLine(columns.map((name) => cellOf(row[name]))));
    yield head + lines.join("");
    head = "";
  }
  if (head !== "") yield head;
}

/** Tags are one cell. */
function cellOf(value: CallRow[keyof CallRow]): CsvValue {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

async function* writeLines(pages: Pages): AsyncGenerator<string> {
  for await (const rows of pages) {
    yield rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  }
}

/**
 * Made as it is read; the work stops when reading stops. The first piece is made before the answer
 * begins, so that an early failure is a proper error; a later one breaks the connection.
 */
async function streamOf(pieces: AsyncGenerator<string>): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  let first: IteratorResult<string, unknown> | undefined = await pieces.next();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const result = first ?? (await pieces.next());
        first = undefined;
        if (result.done === true) controller.close();
        else controller.enqueue(encoder.encode(result.value));
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
