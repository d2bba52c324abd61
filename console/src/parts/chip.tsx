import { Button } from "./button.tsx";

/** A filter of the address that no field shows, with the way to remove it. */
export function Chip({
  name,
  value,
  text = value,
  onRemove,
}: {
  readonly name: string;
  /** Empty: there is none. */
  readonly value: string;
  /** Instead of the value, such as the name of an account. */
  readonly text?: string | null | undefined;
  readonly onRemove: () => void;
}) {
  if (value === "") return null;
  return (
    <Button aria-label={`Remove the filter ${name}: ${text ?? value}`} onPress={onRemove}>
      {name}: {text ?? value} <span aria-hidden="true">✕</span>
    </Button>
  );
}
