import type { Application } from "../../entities.ts";
import { type EntitySpec, equals } from "../entity-table.ts";
import { present } from "../row.ts";
import type { Tables } from "../tables.ts";
import { bumpKeys } from "./key-epochs.ts";

interface ApplicationFilter {
  readonly accountId?: string | undefined;
  readonly environment?: string | undefined;
  readonly name?: string | undefined;
}

export const applicationSpec: EntitySpec<Application, Tables["applications"], ApplicationFilter> = {
  table: "applications",
  select: (queries) => queries.selectFrom("applications").selectAll(),
  fixed: ["accountId", "environment"],
  write: (application) => ({ ...application }),
  read: present,
  conditions: ({ accountId, environment, name }) => [
    equals("applications.accountId", accountId),
    equals("applications.environment", environment),
    equals("applications.name", name),
  ],
  onChange: async (queries, { before, after }) => {
    const isSame = before?.disabledAt === after.disabledAt && before?.name === after.name;
    if (!isSame) await bumpKeys(queries, "applicationId", after.id);
  },
};
