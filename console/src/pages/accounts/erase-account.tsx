import type { AccountView, Erased } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Field } from "../../parts/field.tsx";
import { ChangeDialog, Offered, useDraft } from "../../parts/form.tsx";
import { exactText } from "../../parts/numbers.tsx";

/** As many as a list has at most. */
const mostCounted = 500;

/** Shows what would go, and asks for the name of the account. */
export function EraseAccount({
  view,
  onErased,
}: {
  readonly view: AccountView;
  readonly onErased: (erased: Erased) => void;
}) {
  const title = `Erase ${view.name}`;
  const scope = { account_id: view.id };
  const { draft, bind } = useDraft({ confirm: "" });
  const usage = useRead("/usage/totals", { ...scope, since: "3650d" });
  const calls = usage.data && exactText(usage.data.data[0]?.calls ?? 0);
  return (
    <Offered title={title} of={["keys", "applications", "users"]} scope={scope}>
      {({ keys, applications, users }) => (
        <ChangeDialog
          title={title}
          submit="Erase account"
          isDanger
          change="POST /accounts/{id}/erase"
          body={draft}
          parameters={{ id: view.id }}
          onDone={onErased}
        >
          <p>This cannot be undone. It removes for good, and ends its running calls:</p>
          <ul>
            <li>Keys: {counted(keys)}</li>
            <li>Applications: {counted(applications)}</li>
            <li>Users, with their sessions and tokens: {counted(users)}</li>
            <li>Calls in the ledger: {calls ?? "not known yet"}</li>
          </ul>
          <p>
            The audit keeps a record. To stop its keys for a while, disable the account instead.
          </p>
          <Field {...bind("confirm")} label={`Type its name, ${view.name}`} isRequired />
        </ChangeDialog>
      )}
    </Offered>
  );
}

function counted({ length }: readonly unknown[]): string {
  return length < mostCounted ? exactText(length) : `${exactText(length)} or more`;
}
