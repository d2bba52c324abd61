import "./dialog.css";
import type { ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";

/**
 * A question above the page. It is in the page only while it is open, so that its state ends with
 * it. `isFull`: fills the window, for what must not be overlooked.
 */
export function Dialog({
  title,
  children,
  onClose,
  isFull = false,
  isAlert = false,
}: {
  readonly title: string;
  readonly children: ReactNode;
  /** By Esc, or by a press outside. */
  readonly onClose: () => void;
  readonly isFull?: boolean;
  readonly isAlert?: boolean;
}) {
  return (
    <ModalOverlay
      isOpen
      isDismissable
      className="overlay"
      onOpenChange={(isOpen) => isOpen || onClose()}
    >
      <Modal className={isFull ? "modal full" : "modal"}>
        <AriaDialog className="dialog" role={isAlert ? "alertdialog" : "dialog"}>
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
