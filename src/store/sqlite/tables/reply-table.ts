import type { StoredReply } from "../../control-store.ts";
import type { Scope } from "../connection/scope.ts";

export interface ReplyRow {
  readonly id: string;
  readonly request_digest: string;
  readonly status: number;
  readonly body: Uint8Array | null;
  readonly created_at: number;
  readonly shown_until: number;
}

export class ReplyTable {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  get(id: string): Promise<StoredReply | undefined> {
    return this.#scope.run((database) => {
      const row = database.query<ReplyRow, [string]>("SELECT * FROM replies WHERE id = ?").get(id);
      return row === null ? undefined : readReply(row);
    });
  }

  put(reply: StoredReply): Promise<void> {
    return this.#scope.run((database) => {
      database
        .query<unknown, [string, string, number, Uint8Array | null, number, number]>(
          `INSERT OR REPLACE INTO replies
             (id, request_digest, status, body, created_at, shown_until)
           VALUES (?, ?, ?, ?, ?, ?)`,
        )
        .run(
          reply.id,
          reply.requestDigest,
          reply.status,
          reply.body ?? null,
          reply.createdAt,
          reply.shownUntil,
        );
    });
  }
}

function readReply(row: ReplyRow): StoredReply {
  return {
    id: row.id,
    requestDigest: row.request_digest,
    status: row.status,
    body: row.body ?? undefined,
    createdAt: row.created_at,
    shownUntil: row.shown_until,
  };
}
