import {
  choiceLists,
  choicesQuerySchema,
  choicesSchema,
  listedSchema,
} from "../contract/choices.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { invalidField } from "../operation/refusals.ts";

/** Several lists in one answer, each as its own operation gives it to the principal. */
export function choicesOperation(operations: readonly Operation[]): Operation {
  return defineOperation({
    id: "getChoices",
    method: "GET",
    path: "/admin/v1/choices",
    resource: "Platform",
    summary: "Show what a form can offer",
    ...permissions.read,
    query: choicesQuerySchema,
    answer: choicesSchema,
    async run({ call, query: { of, ...filter } }) {
      const names = of.split(",");
      if (!names.every((name) => choiceLists.includes(name))) {
        throw invalidField("of", `use any of ${choiceLists.join(", ")}, separated by commas`);
      }
      const lists: Record<string, unknown> = {};
      for (const name of names) {
        const list = operations.find(({ id }) => id.toLowerCase() === `list${name}`);
        const { shape = {} } = list?.query ?? {};
        const wanted = Object.entries({ limit: "500", ...filter });
        const query = Object.fromEntries(wanted.filter(([field]) => field in shape));
        if (list?.roles.includes(call.principal.role) !== true) continue;
        const answer = await list.run({ call, parameters: {}, query, body: undefined });
        lists[name] = listedSchema.parse(answer).data;
      }
      return choicesSchema.parse(lists);
    },
  });
}
