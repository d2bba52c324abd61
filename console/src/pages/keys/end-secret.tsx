import type { KeyView, SecretView } from "../../api/contract.ts";
import { ChangeDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/time.tsx";

/** Ends one secret for good; the other goes on. */
export function EndSecret({
  view,
  secret,
  lastUsedAt,
  onEnded,
}: {
  readonly view: KeyView;
  readonly secret: SecretView;
  readonly lastUsedAt: string | null;
  readonly onEnded?: () => void;
}) {
  return (
    <ChangeDialog
      title={`End the secret ${secret.hint}`}
      submit="End secret"
      isDanger
      change="DELETE /keys/{id}/secrets/{public_id}"
      body={undefined}
      parameters={{ id: view.id, public_id: secret.public_id }}
      onDone={onEnded}
    >
      <p>
        Calls that still send it are refused within a second. It was last used{" "}
        <Time at={lastUsedAt} isRelative />. The key and its other secret go on.
      </p>
    </ChangeDialog>
  );
}
