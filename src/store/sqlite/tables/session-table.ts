import type { Session } from "../../../domain/accounts/user.ts";
import type { Scope } from "../connection/scope.ts";
import { insertRow } from "../table.ts";

export interface SessionRow {
  readonly id: string;
  readonly user_id: string;
  readonly created_at: number;
  readonly last_seen_at: number;
  readonly expires_at: number;
}

export class SessionTable {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  get(id: string): Promise<Session | undefined> {
    return this.#scope.run((database) => {
      const row = database
        .query<SessionRow, [string]>("SELECT * FROM sessions WHERE id = ?")
        .get(id);
      return row === null ? undefined : readSession(row);
    });
  }

  insert(session: Session): Promise<void> {
    return this.#scope.run((database) =>
      insertRow(database, "sessions", {
        id: session.id,
        user_id: session.userId,
        created_at: session.createdAt,
        last_seen_at: session.lastSeenAt,
        expires_at: session.expiresAt,
      }),
    );
  }

  seen(id: string, at: number): Promise<void> {
    return this.#scope.run((database) => {
      database
        .query<unknown, [number, string]>(
          "UPDATE sessions SET last_seen_at = max(last_seen_at, ?) WHERE id = ?",
        )
        .run(at, id);
    });
  }

  delete(id: string): Promise<void> {
    return this.#scope.run((database) => {
      database.query<unknown, [string]>("DELETE FROM sessions WHERE id = ?").run(id);
    });
  }

  deleteOf(userId: string): Promise<void> {
    return this.#scope.run((database) => {
      database.query<unknown, [string]>("DELETE FROM sessions WHERE user_id = ?").run(userId);
    });
  }
}

function readSession(row: SessionRow): Session {
  return {
    id: row.id,
    userId: row.user_id,
    createdAt: row.created_at,
    lastSeenAt: row.last_seen_at,
    expiresAt: row.expires_at,
  };
}
