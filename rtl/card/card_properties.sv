// The card's ports, watched.
bind penstock_card penstock_axi_check #(
    .ID_BITS(6),
    .DEPTH  (255)
) i_ctl_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi_ctl)
);
bind penstock_card penstock_axi_check #(
    .ID_BITS(6),
    .DEPTH  (255)
) i_data_check (
    .clk_i,
    .rst_ni,
    .off_i(1'b0),
    `PENSTOCK_AXI_CHECK_PORT(m_axi_data)
);
