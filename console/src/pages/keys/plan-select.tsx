import type { Choices, PlanView } from "../../api/contract.ts";
import { Note } from "../../parts/error-note.tsx";
import { optionsOf, Select } from "../../parts/field.tsx";
import { exactText } from "../../parts/numbers.tsx";

type Account = Choices["accounts"][number];

/** The plans of a key: holders may give those of the account, and keep the one that it has. */
export function offeredPlans(
  plans: readonly PlanView[],
  account: Account | undefined,
  { isOperator, kept = "" }: { readonly isOperator: boolean; readonly kept?: string },
): readonly PlanView[] {
  return plans.filter(
    ({ name }) => isOperator || name === kept || account?.plans.includes(name) === true,
  );
}

/** A plan with its limits; operators are warned of one that the account does not have. */
export function PlanSelect({
  plans,
  account,
  value,
  onChange,
}: {
  readonly plans: readonly PlanView[];
  readonly account: Account | undefined;
  readonly value: string;
  readonly onChange: (plan: string) => void;
}) {
  return (
    <>
      <Select
        label="Plan"
        name="plan"
        value={value}
        onChange={onChange}
        hint={limitsText(plans.find(({ name }) => name === value))}
        options={optionsOf(plans.map(({ name }) => name))}
      />
      {account?.plans.includes(value) === false && (
        <Note tone="warn">
          Plan {value} is not among the plans of account {account.name}: its holders cannot choose
          it.
        </Note>
      )}
    </>
  );
}

function limitsText(plan: PlanView | undefined): string {
  const { requests_per_minute: requests = null, tokens_per_minute: tokens = null } = plan ?? {};
  if (requests === null || tokens === null) return "Each key has its own limits.";
  const { mode, token_weights: weights } = plan ?? {};
  const counted =
    weights === null || weights === undefined
      ? ""
      : ` A token of cached input counts ${weights.cached_input}, of cache writes ${weights.cache_write}, of output ${weights.output ?? "by model"}.`;
  const audit = mode === "audit" ? " It is in audit: nothing is refused." : "";
  return `${exactText(requests)} requests and ${exactText(tokens)} tokens in any minute.${counted}${audit}`;
}
