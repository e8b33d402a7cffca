"""How anything leaves: noise from one meter, outputs kept once and published as copies."""
