import type { SignInLink } from "../../entities.ts";
import type { Queries } from "../tables.ts";

/** Part of the schema of both databases. */
export const table = `
  -- Links that sign a user in once. A user has at most one.
  CREATE TABLE sign_in_links (
    user_id TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    -- SHA-256 of the token in the link.
    digest TEXT NOT NULL UNIQUE,
    purpose TEXT NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);
`;

export function linksIn(queries: Queries) {
  return {
    get(digest: string): Promise<SignInLink | undefined> {
      const query = queries.selectFrom("signInLinks").selectAll().where("digest", "=", digest);
      return query.executeTakeFirst();
    },

    /** Ends an earlier link of the user. */
    async put(link: SignInLink): Promise<void> {
      await queries
        .insertInto("signInLinks")
        .values(link)
        .onConflict((conflict) => conflict.column("userId").doUpdateSet(link))
        .execute();
    },

    /** False when there is none, or another transaction has taken it. */
    async take(digest: string): Promise<boolean> {
      const removal = queries.deleteFrom("signInLinks").where("digest", "=", digest);
      return (await removal.executeTakeFirst()).numDeletedRows === 1n;
    },

    async deleteOf(userId: string): Promise<void> {
      await queries.deleteFrom("signInLinks").where("userId", "=", userId).execute();
    },
  };
}
