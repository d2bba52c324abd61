import { UnfinishedCopy } from "../errors.ts";
import type { DatabaseOwner, InspectedDatabase } from "../installation.ts";

/** Refuses, as a start does, a database of another installation. Throws `WrongDatabase`. */
export function refuseOthers(
  { database, isUnfinishedCopy }: InspectedDatabase,
  owner: Pick<DatabaseOwner, "check">,
): void {
  if (database === undefined) return;
  if (isUnfinishedCopy) throw new UnfinishedCopy(database.path);
  owner.check(database);
}
