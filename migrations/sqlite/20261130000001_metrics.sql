-- What is counted for those who watch a control plane is counted by index.

CREATE INDEX domains_by_claim ON domains (claim);
CREATE INDEX orders_waiting_by_lane ON orders (lane) WHERE state = 'waiting';
