import { textsOf, type AdminClient } from "../client/admin-client.ts";
import { readRecord, readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import type { DescribedOperation } from "./described-operations.ts";

/** Most items of one page of the admin API. */
const pageLimit = 500;
const defaultLimit = 50;

export interface ListRequest {
  readonly path: string;
  readonly operation: Pick<DescribedOperation, "query">;
  readonly query: ReplyRecord;
}

/** Reads the answer of a `GET`; for a list, as many pages as the requested items need. */
export async function readList(client: AdminClient, request: ListRequest): Promise<unknown> {
  const { path, operation } = request;
  const query = textsOf(request.query);
  const isPaged = "cursor" in (operation.query?.shape ?? {});
  if (!isPaged) return client.request("GET", path, { query });
  const wanted = Number(query["limit"] ?? defaultLimit);
  const data: ReplyRecord[] = [];
  let { cursor } = query;
  for (;;) {
    const limit = Math.min(wanted - data.length, pageLimit);
    const page = readRecord(
      await client.request("GET", path, { query: { ...query, limit, cursor } }),
    );
    const items = readRecords(page, "data");
    data.push(...items);
    const next = page["next_cursor"];
    if (typeof next !== "string") return { data, next_cursor: null };
    if (data.length >= wanted || items.length === 0) return { data, next_cursor: next };
    cursor = next;
  }
}
