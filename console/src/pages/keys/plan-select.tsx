import type { PlanView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Note } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { useRole } from "../../shell/role.ts";

/**
 * The plans that the user may give to a key of an account: holders those of the account, and one
 * that the key has already. Undefined while they are not known.
 */
export function useOfferedPlans(accountId: string, kept = "") {
  const isOperator = useRole() === "operator";
  const configured = useRead("/plans").data?.data;
  const { data } = useRead("/accounts/{id}", { id: accountId }, { isOff: accountId === "" });
  const account = data?.id === accountId ? data : undefined;
  const isOffered = ({ name }: PlanView): boolean =>
    isOperator || name === kept || account?.plans.includes(name) === true;
  const isKnown = isOperator || account !== undefined;
  return { account, plans: isKnown ? configured?.filter(isOffered) : undefined };
}

export type OfferedPlans = ReturnType<typeof useOfferedPlans>;

/** A plan with its limits; operators are warned of one that the account does not have. */
export function PlanSelect({
  offered: { account, plans = [] },
  value,
  onChange,
}: {
  readonly offered: OfferedPlans;
  readonly value: string;
  readonly onChange: (plan: string) => void;
}) {
  const isOutside = account?.plans.includes(value) === false && value !== "";
  return (
    <>
      <Select
        label="Plan"
        name="plan"
        value={value}
        onChange={onChange}
        hint={limitsText(plans.find(({ name }) => name === value))}
        options={plans.map(({ name }) => ({ value: name, label: name }))}
      />
      {isOutside && (
        <Note tone="warn">
          <p>
            Plan {value} is not among the plans of account {account.name}: its holders cannot choose
            it.
          </p>
        </Note>
      )}
    </>
  );
}

function limitsText(plan: PlanView | undefined): string {
  const { requests_per_minute: requests = null, tokens_per_minute: tokens = null } = plan ?? {};
  if (requests === null || tokens === null) return "Each key has its own limits.";
  return `${exactText(requests)} requests and ${exactText(tokens)} tokens in any minute.`;
}
