import type { Peppers } from "../../domain/keys/peppers.ts";
import type { PepperUse } from "../../store/control-store.ts";
import { peppersSchema, type PepperView } from "../contract/platform.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";

/** Enough digits to distinguish ten peppers. */
const shownLength = 12;

/** The peppers, each with what still depends on it. */
export function pepperOperations({ store, peppers, clock }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "listPeppers",
      method: "GET",
      path: "/admin/v1/peppers",
      resource: "Keys",
      summary: "Show what still needs each pepper",
      description:
        "For a rotation of `auth.peppers`: digests are renewed when a key or token is used, " +
        "so unused ones stay under their old pepper.",
      ...permissions.oversee,
      answer: peppersSchema,
      async run({ call }) {
        requireUnbound(call.principal);
        const use = await store.pepperUse(clock.now());
        return {
          data: marksOf(peppers, use).map((mark) => viewPepper(mark, peppers, use)),
          first_since: use.firstSince === undefined ? null : timeText(use.firstSince),
          kept_answers: use.keptAnswers,
        };
      },
    }),
  ];
}

/** Configured peppers in order, then others that are still in use. */
function marksOf({ all }: Peppers, use: PepperUse): readonly string[] {
  const used = [...use.secrets.keys(), ...use.tokens.keys()];
  return [...new Set([...all.map(({ mark }) => mark), ...used])].filter((mark) => mark !== "");
}

function viewPepper(mark: string, peppers: Peppers, use: PepperUse): PepperView {
  const isConfigured = peppers.find(mark) !== undefined;
  const role = mark === peppers.first.mark ? "first" : isConfigured ? "older" : "not_configured";
  return {
    pepper: mark.slice(0, shownLength),
    role,
    secrets: use.secrets.get(mark) ?? 0,
    tokens: use.tokens.get(mark) ?? 0,
  };
}
